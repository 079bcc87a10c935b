extension AccountClient {
    /// The backend's response to new tokens.
    public struct ConnectedAccount: Decodable, Hashable, Sendable {
        /// The connection that the tokens went to.
        public let connection: Connection
        /// `true` if the connection had another Google account before.
        public let isAccountSwitch: Bool
        /// `true` if a `serverAuthCode` brought no refresh token, and the backend has none that works: call the SDK's
        /// `disconnect()`, and sign in again. `nil` without a code.
        public let isRefreshTokenMissing: Bool?

        private enum CodingKeys: String, CodingKey {
            case connection
            case isAccountSwitch = "account_switch"
            case isRefreshTokenMissing = "refresh_token_missing"
        }
    }
}

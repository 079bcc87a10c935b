/// The route that every backend has, also one that knows one connection for each user.
extension AccountClient {
    /// The backend's response to tokens by the route for one connection.
    public struct StoredGrant: Decodable, Hashable, Sendable {
        /// The Google account's address.
        public let googleEmail: String
        /// The scopes that the user has granted, separated by spaces.
        public let scope: String
        /// `true` if this is another Google account than before.
        public let isAccountSwitch: Bool
        /// The outcome, for people.
        public let message: String
        /// As ``ConnectedAccount/isRefreshTokenMissing``.
        public let isRefreshTokenMissing: Bool?

        private enum CodingKeys: String, CodingKey {
            case scope, message
            case isRefreshTokenMissing = "refresh_token_missing"
            case googleEmail = "google_email"
            case isAccountSwitch = "account_switch"
        }

        /// The scopes that the user has granted.
        public var grantedScopes: [String] { scope.split(separator: " ").map(String.init) }
    }

    /// Gives the backend tokens for the default connection.
    func store(_ tokens: GoogleTokens, as account: Int?) async throws(AccountError) -> StoredGrant {
        try await call(
            Envelope<StoredGrant>.self,
            "POST",
            "v1/auth/gmail-tokens",
            body: tokens,
            redacting: tokens.secrets,
            as: account
        ).data
    }
}

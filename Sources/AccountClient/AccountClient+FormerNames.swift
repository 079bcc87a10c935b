/// The names that say Gmail, from before a user could have several connections.
///
/// They call the routes for one connection, which older backends have too.
extension AccountClient {
    /// The former name of ``Connection``.
    @available(*, deprecated, renamed: "Connection")
    public typealias GmailConnection = Connection

    /// Connects the default connection.
    ///
    /// - Throws: As ``perform(_:)``, and ``AccountError/refused(status:code:message:)``.
    @available(*, deprecated, renamed: "connectGoogle(_:connection:onSwitch:)")
    @discardableResult
    public func storeGoogleTokens(_ tokens: GoogleTokens) async throws(AccountError) -> StoredGrant {
        try await store(tokens, as: nil)
    }

    /// Gives the backend tokens for the default connection, by the route that older backends have too.
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

    /// Ends the default connection.
    ///
    /// - Throws: As ``perform(_:)``, and ``AccountError/refused(status:code:message:)``.
    @available(*, deprecated, renamed: "disconnectGoogle(_:)")
    public func disconnectGmail() async throws(AccountError) {
        try await callForSuccess("DELETE", "v1/auth/gmail-tokens")
    }

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
}

extension AccountClient.Profile {
    /// The former name of ``isConnected``.
    @available(*, deprecated, renamed: "isConnected")
    public var isGmailConnected: Bool { isConnected }

    /// The former name of ``defaultConnection``.
    @available(*, deprecated, renamed: "defaultConnection")
    public var gmailConnection: AccountClient.Connection? { defaultConnection }
}

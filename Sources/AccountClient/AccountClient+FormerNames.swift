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

    /// Ends the default connection.
    ///
    /// - Throws: As ``perform(_:)``, and ``AccountError/refused(status:code:message:)``.
    @available(*, deprecated, renamed: "disconnectGoogle(_:)")
    public func disconnectGmail() async throws(AccountError) {
        try await callForSuccess("DELETE", "v1/auth/gmail-tokens")
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

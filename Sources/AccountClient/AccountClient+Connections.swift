extension AccountClient {
    private struct ConnectionList: Decodable, Sendable {
        let connections: [Connection]
    }

    /// Returns the user's Google accounts, also those that are disconnected.
    ///
    /// - Throws: As ``perform(_:)``, and ``AccountError/refused(status:code:message:)``.
    public func connections() async throws(AccountError) -> [Connection] {
        try await call(Envelope<ConnectionList>.self, "GET", "v1/connections").data.connections
    }

    /// Gives the backend the tokens of Google's SDK, and with them access to the user's Google account.
    ///
    ///     try await client.connectGoogle(tokens)                               // the user's first account
    ///     try await client.connectGoogle(tokens, connection: .new)             // one more account
    ///     try await client.connectGoogle(tokens, connection: .id("c7k2m9x4"))  // this very connection again
    ///
    /// - Parameters:
    ///   - tokens: The tokens, or a `serverAuthCode` in place of the refresh token.
    ///   - connection: The connection that they are for.
    ///   - onSwitch: Whether the default connection can switch to another account.
    /// - Returns: The connection that the tokens went to.
    /// - Throws: As ``perform(_:)``, ``AccountError/refused(status:code:message:)``,
    ///   ``AccountError/otherAccount(expected:found:)``, ``AccountError/accountIsConnected(connection:)``,
    ///   ``AccountError/unknownConnection``, and ``AccountError/tooManyConnections``.
    @discardableResult
    public func connectGoogle(
        _ tokens: GoogleTokens,
        connection: ConnectionTarget = .default,
        onSwitch: SwitchPolicy = .allow
    ) async throws(AccountError) -> ConnectedAccount {
        try await connect(tokens, to: connection, onSwitch: onSwitch, as: nil)
    }

    func connect(
        _ tokens: GoogleTokens,
        to target: ConnectionTarget,
        onSwitch: SwitchPolicy,
        as account: Int?
    ) async throws(AccountError) -> ConnectedAccount {
        let request = try ConnectionRequest(tokens, for: target, onSwitch: onSwitch)
        return try await call(
            Envelope<ConnectedAccount>.self,
            "POST",
            "v1/connections/google",
            body: request,
            redacting: tokens.secrets,
            as: account
        ).data
    }

    /// Ends the backend's access to one of the user's Google accounts.
    ///
    /// - Parameter connection: The id of the connection.
    /// - Throws: As ``perform(_:)``, ``AccountError/refused(status:code:message:)``, and
    ///   ``AccountError/unknownConnection``.
    public func disconnectGoogle(_ connection: String = Connection.defaultID) async throws(AccountError) {
        let id = try Connection.checked(connection)
        try await callForSuccess("DELETE", "v1/connections/\(id)")
    }
}

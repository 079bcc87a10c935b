extension AccountClient {
    /// A request to the user for scopes, to make with Google's SDK.
    public struct ScopeRequest: Hashable, Sendable {
        /// The missing scopes.
        public let scopes: [String]
        /// The call of the SDK that can succeed: `signIn` with `additionalScopes` if `true`, else `addScopes`.
        ///
        /// `true` if the account is not connected. The phone still remembers the scopes of a grant that has ended, and
        /// `addScopes` fails with `scopesAlreadyGranted` for them.
        ///
        /// If `false`, `addScopes` can still be the wrong call: it asks the SDK's current user, whose address must be
        /// ``googleEmail``.
        public let needsSignIn: Bool
        /// The connection that the scopes are for.
        public let connection: ConnectionTarget
        /// The address of the connection's account, for the SDK's `hint`, or nil if the user can choose any.
        public let googleEmail: String?
    }

    /// Returns the scopes of `needed` that the user has not granted to the default connection, according to the current
    /// profile.
    ///
    /// - Throws: As ``profile()``.
    public func missingScopes(needed: [String]) async throws(AccountError) -> [String] {
        try await profile().missingScopes(needed: needed)
    }

    /// Asks the user for the missing scopes, if any, and gives the backend the extended grant.
    ///
    /// It also makes the first connection, and repairs one that has ended: then every scope is missing.
    ///
    /// - Parameters:
    ///   - needed: The scopes that the app is about to use.
    ///   - target: The connection that they are for. With `.new` every scope is missing.
    ///   - onSwitch: Whether the default connection can switch to another account.
    ///   - askUser: Asks with Google's SDK, and returns the SDK's tokens.
    /// - Returns: The scopes that are still missing, because the user did not grant them.
    /// - Throws: The error of `askUser`, and as ``connectGoogle(_:connection:onSwitch:)``.
    public func addScopes(
        _ needed: [String],
        connection target: ConnectionTarget = .default,
        onSwitch: SwitchPolicy = .allow,
        askUser: @Sendable (_ request: ScopeRequest) async throws -> GoogleTokens
    ) async throws -> [String] {
        let account = try await bearer().account
        let request = try await scopeRequest(for: needed, of: target, as: account)
        guard !request.scopes.isEmpty else { return [] }
        let tokens = try await askUser(request)
        // The user consented for the account that called: the grant must not go to another account.
        let granted = try await grantedScopes(by: tokens, for: target, onSwitch: onSwitch, as: account)
        return Connection.missing(needed, from: granted)
    }

    /// Gives the backend the tokens, and returns all scopes of the connection.
    ///
    /// The default connection needs no more than the former route: an app's `addScopes` goes on working with a backend,
    /// or behind a proxy, that does not know the new one.
    private func grantedScopes(
        by tokens: GoogleTokens,
        for target: ConnectionTarget,
        onSwitch: SwitchPolicy,
        as account: Int
    ) async throws(AccountError) -> [String] {
        if target == .default, onSwitch == .allow { return try await store(tokens, as: account).grantedScopes }
        return try await connect(tokens, to: target, onSwitch: onSwitch, as: account).connection.grantedScopes
    }

    private func scopeRequest(
        for needed: [String],
        of target: ConnectionTarget,
        as account: Int
    ) async throws(AccountError) -> ScopeRequest {
        switch target {
        case .new:
            return ScopeRequest(
                scopes: Connection.missing(needed, from: []),
                needsSignIn: true,
                connection: target,
                googleEmail: nil
            )
        case .default, .id(Connection.defaultID):
            let profile = try await profile(as: account)
            return ScopeRequest(
                scopes: profile.missingScopes(needed: needed),
                needsSignIn: !profile.isConnected,
                connection: target,
                googleEmail: profile.defaultConnection?.googleEmail
            )
        case .id(let id):
            let profile = try await profile(as: account)
            guard let connection = profile.connections.first(where: { $0.id == id }) else { throw .unknownConnection }
            return ScopeRequest(
                scopes: connection.missingScopes(needed: needed),
                needsSignIn: !connection.isConnected,
                connection: target,
                googleEmail: connection.googleEmail
            )
        }
    }
}

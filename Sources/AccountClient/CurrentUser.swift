extension AccountClient {
    /// The signed-in user, as the app's own tokens name them.
    public struct CurrentUser: Hashable, Identifiable, Sendable {
        /// The backend's id of the user.
        public let id: String
        /// The user's address when the token was issued, or nil if the token has none.
        public let email: String?
    }

    /// The signed-in user, without a call to the backend, or nil if no user is signed in.
    ///
    /// It is also nil if the tokens do not say whose they are: ``isSignedIn`` is right for those too.
    /// ``fetchCurrentUser()`` has the name and the picture.
    ///
    /// - Throws: ``AccountError/tokenStore(_:domain:code:)``, or the error of the app's own session.
    public var currentUser: CurrentUser? {
        get async throws(AccountError) {
            do {
                let token = try await currentToken()
                guard ownSession != nil, let token else { return cache.user }
                return TokenPair.currentUser(of: token)
            } catch .signedOut {
                return nil
            }
        }
    }
}

extension TokenPair {
    /// The user whom the tokens name. The refresh token names one too, for an app that was closed before it had stored
    /// the access token.
    var user: AccountClient.CurrentUser? {
        if let accessToken, let user = Self.currentUser(of: accessToken) { return user }
        return Self.currentUser(of: refreshToken)
    }

    static func currentUser(of token: String) -> AccountClient.CurrentUser? {
        guard let id = user(of: token) else { return nil }
        return AccountClient.CurrentUser(id: id, email: email(of: token))
    }
}

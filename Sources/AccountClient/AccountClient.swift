public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// The app's side of the backend: signs in, keeps the app's tokens fresh, and sends every call with them.
///
/// Create one for the whole app, so that all callers share one refresh. A failed refresh signs the user out only if the
/// server says that the session of the stored refresh token has ended. A timeout, a lost response, 429, 5xx, and a 401
/// from a server in between leave the user signed in.
///
///     let client = try AccountClient(baseURL: backend, tokens: KeychainTokenStore())
///     try await client.signIn(googleAccessToken: token)
///     let profile = try await client.profile()
///     let (data, response) = try await client.perform(URLRequest(url: backend.appending(path: "v1/mail")))
///
/// An app that signs its users in elsewhere gives the client that session's access tokens instead
/// (``init(baseURL:accessToken:session:now:)``).
public actor AccountClient {
    /// The backend's address.
    public nonisolated let baseURL: URL

    let transport: Transport
    let now: @Sendable () -> Date
    /// Called after a call begins to wait for a refresh, and after a refresh ends: tests await these events.
    let onRefreshChange: @Sendable () -> Void
    /// The app's own session, or nil if this client keeps the tokens.
    let ownSession: OwnSession?
    var cache: TokenCache {
        didSet { if let change = cache.change { observers.publish(change) } }
    }
    var observers = SessionObservers()
    /// The user of the own session's last token.
    var ownUser: String?
    /// The calls of the app's own session, and the latest one that has answered.
    var ownSessionCalls = 0
    var latestOwnSessionAnswer = 0
    /// Grows with every sign-in, log-out and end of the session. Responses for an earlier value are dropped.
    var account = 0
    /// Requested sign-ins and log-outs, so that the last request wins.
    private var accountRequests = 0
    /// The refresh in progress, if any.
    var currentRefresh: SharedRefresh?
    var refreshesStarted = 0
    var waitersAdded = 0

    /// Creates a client of the backend at an address, with its tokens in a store.
    ///
    /// - Parameters:
    ///   - baseURL: The backend's address, which is `https` except on this machine.
    ///   - tokens: The store for the app's tokens.
    ///   - session: Sends the requests. The default waits for a network, and has neither cookies nor a cache. Yours
    ///     should not have them either.
    ///   - now: The clock for the expiry of access tokens.
    /// - Throws: ``AccountError/insecureBaseURL``.
    public init(
        baseURL: URL,
        tokens: any TokenStore,
        session: URLSession? = nil,
        now: @escaping @Sendable () -> Date = { Date() }  // time: allowed
    ) throws(AccountError) {
        try self.init(baseURL: baseURL, tokens: tokens, transport: Self.transport(over: session), now: now)
    }

    /// Creates a client for an app that signs its users in elsewhere, such as with its own backend's login.
    ///
    /// The client keeps no tokens then, and ``signIn(googleAccessToken:)`` and ``logout()`` throw
    /// ``AccountError/ownSession``. If the tokens are JSON Web Tokens, the client notices when another user has signed
    /// in, and a call that began for the former user throws ``AccountError/sessionReplaced``.
    ///
    /// - Parameters:
    ///   - baseURL: The backend's address, which is `https` except on this machine.
    ///   - accessToken: Returns the session's access token, or nil if no user is signed in. With `true` it must get a
    ///     new one, because the backend has refused the former: all calls that wait share one such renewal.
    ///   - session: Sends the requests. The default waits for a network, and has neither cookies nor a cache.
    ///   - now: The clock for the expiry of access tokens.
    /// - Throws: ``AccountError/insecureBaseURL``.
    public init(
        baseURL: URL,
        accessToken: @escaping @Sendable (_ isRenewed: Bool) async throws -> String?,
        session: URLSession? = nil,
        now: @escaping @Sendable () -> Date = { Date() }  // time: allowed
    ) throws(AccountError) {
        try self.init(baseURL: baseURL, ownSession: accessToken, transport: Self.transport(over: session), now: now)
    }

    /// Creates a client with another transport.
    package init(
        baseURL: URL,
        tokens: any TokenStore = InMemoryTokenStore(),
        ownSession: OwnSession? = nil,
        transport: @escaping Transport,
        now: @escaping @Sendable () -> Date,
        onRefreshChange: @escaping @Sendable () -> Void = {}
    ) throws(AccountError) {
        guard Origin(baseURL)?.keepsSecrets == true else { throw .insecureBaseURL }
        self.baseURL = baseURL
        self.transport = transport
        self.now = now
        self.onRefreshChange = onRefreshChange
        self.ownSession = ownSession
        self.cache = TokenCache(tokens)
    }

    private static func transport(over session: URLSession?) -> Transport {
        let session = session ?? URLSession(configuration: .forCalls)
        return { request, canWait throws(AccountError) in try await session.response(to: request, canWait: canWait) }
    }

    deinit { observers.finish() }

    /// `true` if tokens are stored, or the app's own session has one.
    ///
    /// The server might have ended their session.
    ///
    /// - Throws: ``AccountError/tokenStore(_:domain:code:)``, or the error of the app's own session.
    public var isSignedIn: Bool {
        get async throws(AccountError) {
            do {
                _ = try await currentToken()
                return true
            } catch .signedOut {
                return false
            }
        }
    }

    /// Signs in with the access token that the app got from Google's SDK, and stores the app's own tokens.
    ///
    /// The former user stays signed in until the sign-in has succeeded. If the tokens cannot be saved, no
    /// user is signed in afterwards.
    ///
    /// - Parameter googleAccessToken: `user.accessToken.tokenString` of Google's SDK.
    /// - Throws: ``AccountError/sessionReplaced`` if a later sign-in or log-out was requested before this one
    ///   completed.
    public func signIn(googleAccessToken: String) async throws(AccountError) {
        try await signIn(with: ["access_token": googleAccessToken], redacting: googleAccessToken)
    }

    /// Signs in with the ID token that the app got from Google's SDK, and stores the app's own tokens.
    ///
    /// The server verifies it by itself, and accepts each ID token once: sign in with Google again for another try. As
    /// ``signIn(googleAccessToken:)`` it leaves the former user signed in until it has succeeded.
    ///
    ///     let nonce = AccountClient.makeNonce()
    ///     let result = try await google.signIn(withPresenting: presenter, hint: nil, additionalScopes: nil, nonce: nonce)
    ///     guard let idToken = result.user.idToken?.tokenString else { return }
    ///     try await client.signIn(googleIDToken: idToken, nonce: nonce)
    ///
    /// - Parameters:
    ///   - googleIDToken: `user.idToken.tokenString` of Google's SDK.
    ///   - nonce: The nonce that the app gave to Google's SDK, or nil if it gave none. The server refuses a token with
    ///     another one, such as a token that was stolen before.
    /// - Throws: As ``signIn(googleAccessToken:)``.
    public func signIn(googleIDToken: String, nonce: String? = nil) async throws(AccountError) {
        var proof = ["id_token": googleIDToken]
        if let nonce { proof["nonce"] = nonce }
        try await signIn(with: proof, redacting: googleIDToken)
    }

    /// Returns a random nonce for one sign-in: 32 bytes of the system's secure generator, as URL-safe Base64.
    public static func makeNonce() -> String {
        let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
        return Data(bytes).base64EncodedString().replacingOccurrences(of: "+", with: "-")
            .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
    }

    private func signIn(with proof: [String: String], redacting secret: String) async throws(AccountError) {
        guard ownSession == nil else { throw .ownSession }
        accountRequests += 1
        let request = accountRequests
        let tokens = try await issuedTokens(
            by: try jsonRequest("POST", "api/auth/mobile/google", body: proof),
            redacting: secret
        )
        guard request == accountRequests else { throw .sessionReplaced }
        leaveAccount(with: .sessionReplaced)
        do {
            try cache.signIn(tokens.pair)
        } catch {
            // This failure is the one to report: if the tokens cannot be removed either, the cause is the same.
            _ = cache.clear(because: .unsavedSignIn)
            throw error
        }
    }

    /// Removes the tokens, and asks the server to end the session.
    ///
    /// The tokens are removed first, so that neither a sign-in during the call nor the end of the process can
    /// interfere. The server is asked even if the calling task is cancelled.
    ///
    /// - Returns: `true` if the server confirmed it.
    /// - Throws: ``AccountError/tokenStore(_:domain:code:)`` if the tokens could not be removed from the store.
    @discardableResult
    public func logout() async throws(AccountError) -> Bool {
        guard ownSession == nil else { throw .ownSession }
        accountRequests += 1
        let pair: TokenPair?
        do {
            pair = try cache.pair()
        } catch {
            // Tokens that cannot be read cannot be sent to the server, but they can be removed.
            pair = nil
        }
        leaveAccount(with: .signedOut)
        let failure = cache.clear(because: .logout)
        var isConfirmed = false
        if let pair { isConfirmed = await Task { await self.endSession(of: pair) }.value }
        if let failure { throw failure }
        return isConfirmed
    }

    /// Deletes the user at the backend, with all sessions and the connections to Google, and removes the tokens.
    ///
    /// After ``AccountError/unreachable(_:)`` the user might be deleted already: call it again. The backend confirms a
    /// repeated deletion. If the access token has expired since, the call throws ``AccountError/signedOut``, with the
    /// tokens removed.
    ///
    /// - Throws: As ``perform(_:)``, ``AccountError/refused(status:code:message:)``, and
    ///   ``AccountError/tokenStore(_:domain:code:)`` if the tokens could not be removed from the store.
    public func deleteAccount() async throws(AccountError) {
        let request = accountRequests
        let account = try await bearer().account
        try await callForSuccess("DELETE", "v1/user/me", as: account)
        // Another user might have signed in during the call.
        guard ownSession == nil, account == self.account else { return }
        // A sign-in that was requested before the deletion is over. One that was requested since goes on.
        if request == accountRequests { accountRequests += 1 }
        leaveAccount(with: .signedOut)
        if let failure = cache.clear(because: .accountDeletion) { throw failure }
    }

    /// Ends the refresh of the current account with an error, and drops the responses that are still missing.
    func leaveAccount(with error: AccountError) {
        account += 1
        finishRefresh(with: .failure(error))
    }

    private func endSession(of pair: TokenPair) async -> Bool {
        do {
            var request = try jsonRequest("POST", "api/auth/logout", body: ["refresh_token": pair.refreshToken])
            // An expired access token would be refused before the refresh token is read.
            if let accessToken = pair.accessToken, !isExpiring(accessToken) { request.setBearer(accessToken) }
            request.timeoutInterval = 10
            let (_, response) = try await transport(request, false)
            return response.statusCode == 200
        } catch {
            return false
        }
    }
}

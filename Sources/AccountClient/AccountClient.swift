public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// The app's side of the backend: signs in, keeps the app's tokens fresh, and sends every call with them.
///
/// Create one for the whole app, so that all callers share one refresh. A failed refresh signs the user out only if the
/// server says that the session of the stored refresh token has ended. A timeout, a lost response, 429, 5xx, and a 401
/// from a server in between leave the user signed in.
public actor AccountClient {
    /// The backend's address.
    public nonisolated let baseURL: URL

    let transport: Transport
    let now: @Sendable () -> Date
    /// Called after a call begins to wait for a refresh, and after a refresh ends: tests await these events.
    let onRefreshChange: @Sendable () -> Void
    var cache: TokenCache
    /// Grows with every sign-in, log-out and end of the session.
    ///
    /// Responses for an earlier value are dropped.
    var account = 0
    /// The number of requested sign-ins and log-outs, so that the last request wins.
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
    ///   - session: Sends the requests. The default has neither cookies nor a cache, and yours should not have them
    ///     either.
    ///   - now: The clock for the expiry of access tokens.
    /// - Throws: ``AccountError/insecureBaseURL``.
    public init(
        baseURL: URL,
        tokens: any TokenStore,
        session: URLSession = URLSession(configuration: .ephemeral),
        now: @escaping @Sendable () -> Date = { Date() }  // time: allowed
    ) throws(AccountError) {
        let transport: Transport = { request throws(AccountError) in try await session.response(to: request) }
        try self.init(baseURL: baseURL, tokens: tokens, transport: transport, now: now)
    }

    /// Creates a client with another transport.
    package init(
        baseURL: URL,
        tokens: any TokenStore,
        transport: @escaping Transport,
        now: @escaping @Sendable () -> Date,
        onRefreshChange: @escaping @Sendable () -> Void = {}
    ) throws(AccountError) {
        guard Origin(baseURL)?.keepsSecrets == true else { throw .insecureBaseURL }
        self.baseURL = baseURL
        self.transport = transport
        self.now = now
        self.onRefreshChange = onRefreshChange
        self.cache = TokenCache(tokens)
    }

    /// `true` if tokens are stored.
    ///
    /// The server might have ended their session.
    ///
    /// - Throws: ``AccountError/tokenStore(_:domain:code:)``.
    public var isSignedIn: Bool {
        get throws(AccountError) { try cache.pair() != nil }
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
        accountRequests += 1
        let request = accountRequests
        let tokens = try await issuedTokens(
            by: try jsonRequest("POST", "api/auth/mobile/google", body: ["access_token": googleAccessToken]),
            redacting: googleAccessToken
        )
        guard request == accountRequests else { throw .sessionReplaced }
        leaveAccount(with: .sessionReplaced)
        do {
            try cache.signIn(tokens.pair)
        } catch {
            // This failure is the one to report: if the tokens cannot be removed either, the cause is the same.
            _ = cache.clear()
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
        accountRequests += 1
        let pair: TokenPair?
        do {
            pair = try cache.pair()
        } catch {
            // Tokens that cannot be read cannot be sent to the server, but they can be removed.
            pair = nil
        }
        leaveAccount(with: .signedOut)
        let failure = cache.clear()
        var isConfirmed = false
        if let pair { isConfirmed = await Task { await self.endSession(of: pair) }.value }
        if let failure { throw failure }
        return isConfirmed
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
            let (_, response) = try await transport(request)
            return response.statusCode == 200
        } catch {
            return false
        }
    }
}

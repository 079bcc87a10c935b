public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// The app's side of the backend: signs in, keeps the app's tokens fresh, and sends every call with them.
///
/// Make one for the whole app: it is what lets all callers share one refresh. A failed refresh signs the user out only
/// when the server says that the session of the stored refresh token has ended. A timeout, a lost answer, 429, 5xx and a
/// 401 of anything between the app and the server leave the user signed in.
public actor AccountClient {
    /// The backend's address.
    public nonisolated let baseURL: URL

    let transport: Transport
    let now: @Sendable () -> Date
    var cache: TokenCache
    /// Grows whenever another sign-in or none takes the place of the present one; answers of an earlier one are void.
    var account = 0
    /// Counts sign-ins and log-outs as they are asked for, so that the last one asked for wins.
    private var intention = 0
    var flight: RefreshFlight?
    var flightsStarted = 0
    var waitersCounted = 0

    /// Makes a client of the backend at an address, whose tokens are in a store.
    ///
    /// - Parameters:
    ///   - baseURL: The backend's address; `https`, save on this same machine.
    ///   - tokens: Where the app's tokens are kept.
    ///   - session: What sends the requests; the default keeps neither cookies nor a cache, and one of yours should not.
    ///   - now: The clock that tells when an access token ends.
    /// - Throws: ``AccountError/insecureBaseURL``.
    public init(
        baseURL: URL,
        tokens: any TokenStore,
        session: URLSession = URLSession(configuration: .ephemeral),
        now: @escaping @Sendable () -> Date = { Date() }
    ) throws(AccountError) {
        try self.init(baseURL: baseURL, tokens: tokens, transport: Transport(session: session), now: now)
    }

    /// Makes a client whose requests go through a transport of the caller's.
    package init(
        baseURL: URL,
        tokens: any TokenStore,
        transport: Transport,
        now: @escaping @Sendable () -> Date
    ) throws(AccountError) {
        guard Origin(baseURL)?.keepsSecrets == true else { throw .insecureBaseURL }
        self.baseURL = baseURL
        self.transport = transport
        self.now = now
        self.cache = TokenCache(tokens)
    }

    /// Whether tokens are held; the server may have ended their session all the same.
    ///
    /// - Throws: ``AccountError/tokenStore(_:domain:code:)``.
    public var isSignedIn: Bool {
        get throws(AccountError) { try cache.pair() != nil }
    }

    /// Signs in with the access token that Google's SDK gave the app, and stores the app's own tokens.
    ///
    /// The user signed in before stays so until the server has answered well. When the tokens cannot be saved, nobody is
    /// signed in afterwards.
    ///
    /// - Parameter googleAccessToken: `user.accessToken.tokenString` of Google's SDK.
    /// - Throws: ``AccountError/sessionReplaced`` when a later sign-in or log-out was asked for meanwhile.
    public func signIn(googleAccessToken: String) async throws(AccountError) {
        intention += 1
        let mine = intention
        let tokens = try await issuedTokens(
            by: try jsonRequest("POST", "api/auth/mobile/google", body: ["access_token": googleAccessToken]),
            leavingOut: googleAccessToken
        )
        guard mine == intention else { throw .sessionReplaced }
        leaveAccount(with: .sessionReplaced)
        do {
            try cache.signIn(tokens.pair)
        } catch {
            // The first failure is the one to fix; a store that also cannot remove has the same cause.
            _ = cache.clear()
            throw error
        }
    }

    /// Forgets the tokens, whatever the server says, and tells the server to end the session.
    ///
    /// The tokens go first, so that neither a sign-in during the call nor the end of the process can mix with it. The
    /// server is told even when the calling task is cancelled.
    ///
    /// - Returns: Whether the server confirmed it.
    /// - Throws: ``AccountError/tokenStore(_:domain:code:)`` when the tokens could not be removed from the store.
    @discardableResult
    public func logout() async throws(AccountError) -> Bool {
        intention += 1
        let pair: TokenPair?
        do {
            pair = try cache.pair()
        } catch {
            // Tokens that cannot be read cannot be told to the server, but they can be removed.
            pair = nil
        }
        leaveAccount(with: .signedOut)
        let failure = cache.clear()
        var isConfirmed = false
        if let pair { isConfirmed = await Task { await self.endSession(of: pair) }.value }
        if let failure { throw failure }
        return isConfirmed
    }

    /// Lets go of all that was under way for the present account.
    func leaveAccount(with error: AccountError) {
        account += 1
        endFlight(with: .failure(error))
    }

    private func endSession(of pair: TokenPair) async -> Bool {
        do {
            var request = try jsonRequest("POST", "api/auth/logout", body: ["refresh_token": pair.refreshToken])
            // An expired access token would be refused before the refresh token is looked at.
            if let accessToken = pair.accessToken, !isEnding(accessToken) { request.setBearer(accessToken) }
            request.timeoutInterval = 10
            let (_, response) = try await transport.send(request)
            return response.statusCode == 200
        } catch {
            return false
        }
    }
}

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension AccountClient {
    /// An access token with less time than this is refreshed before it is used.
    static let minimumTimeLeft: TimeInterval = 60

    /// The limit of one request for new tokens.
    ///
    /// The server accepts a spent refresh token until its successor is presented, so a request whose response was lost
    /// can be repeated at any time. The limit is short because the callers wait for two tries at most.
    private static let refreshTimeout: TimeInterval = 8

    /// The maximum age of a response that is stored, counted from its request.
    ///
    /// A process can be suspended while it waits. When it continues, another process might have sent the same token
    /// again, and the server's grace of a minute might be over. Dropping a response is safe as long as its tokens were
    /// never used: the request can be repeated.
    static let maximumResponseAge: TimeInterval = 30

    /// Rounds of one refresh: a new one begins when another process of the app has stored other tokens.
    private static let maximumRounds = 4

    /// Refreshes the tokens if the access token has less than a minute left, once for all callers.
    ///
    /// - Throws: ``AccountError/signedOut`` if the server has ended the session. The tokens are removed then.
    ///   ``AccountError/tokenStore(_:domain:code:)`` if the new tokens could not be saved. They are kept in memory, and
    ///   saved by the next call for which the store works.
    public func refreshTokensIfNeeded() async throws(AccountError) {
        if try await needsRefresh() { _ = try await refreshed() }
        if let failure = cache.unsaved { throw failure }
    }

    /// Returns an access token with at least a minute left, for what ``perform(_:)`` cannot send: a WebSocket,
    /// server-sent events, a streamed upload, a client of another library.
    ///
    ///     var request = URLRequest(url: socketURL)
    ///     request.setValue("Bearer \(try await client.accessToken())", forHTTPHeaderField: "Authorization")
    ///     let socket = URLSession.shared.webSocketTask(with: request)
    ///
    /// Ask for it each time, and do not keep it. If the server answers it with 401, name it:
    ///
    ///     let newer = try await client.accessToken(replacing: refused)
    ///
    /// Send it to the backend only. The refresh, if there is one, is shared by all callers.
    ///
    /// - Parameter refused: The token that the server has answered with 401.
    /// - Returns: The token, which is sent as `Authorization: Bearer …`.
    /// - Throws: ``AccountError/signedOut`` if no user is signed in, or the server has ended the session. Otherwise the
    ///   error of a failed refresh.
    public func accessToken(replacing refused: String? = nil) async throws(AccountError) -> String {
        let current = try await currentToken()
        if let current, current != refused, !isExpiring(current) { return current }
        return try await refreshed()
    }

    private func needsRefresh() async throws(AccountError) -> Bool {
        guard let token = try await currentToken(), currentRefresh == nil else { return true }
        return isExpiring(token)
    }

    /// Refreshes the tokens even if they are fresh, once for all concurrent callers.
    ///
    /// - Throws: As ``refreshTokensIfNeeded()``.
    public func forceRefresh() async throws(AccountError) {
        _ = try await currentToken()
        _ = try await refreshed()
        if let failure = cache.unsaved { throw failure }
    }

    /// Returns the access token for calls, or nil if only a refresh can get one. Throws ``AccountError/signedOut`` if
    /// no user is signed in.
    func currentToken() async throws(AccountError) -> String? {
        if let ownSession { return try await token(of: ownSession, isRenewed: false) }
        guard let pair = try cache.pair() else { throw .signedOut }
        return pair.accessToken
    }

    /// `true` if a token has too little time left. One without a readable expiry is used until the server refuses it.
    func isExpiring(_ token: String) -> Bool {
        guard let expiry = TokenPair.expiry(of: token) else { return false }
        return expiry.timeIntervalSince(now()) < Self.minimumTimeLeft
    }

    /// Returns the access token of the refresh in progress, or of one that starts now.
    ///
    /// A cancelled caller returns immediately. The refresh continues for the other callers, and because its response
    /// might hold the only valid token.
    func refreshed() async throws(AccountError) -> String {
        waitersAdded += 1
        let waiter = waitersAdded
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: SharedRefresh.Waiter) in
                guard !Task.isCancelled else { return continuation.resume(returning: .failure(.cancelled)) }
                addWaiter(waiter, resuming: continuation)
            }
        } onCancel: {
            Task { await self.cancelWaiter(waiter) }
        }
        return try result.get()
    }

    /// Calls that wait for the refresh in progress.
    package var waitingCalls: Int { currentRefresh?.waiters.count ?? 0 }

    /// `true` while a refresh is in progress.
    package var isRefreshing: Bool { currentRefresh != nil }

    private func addWaiter(_ waiter: Int, resuming continuation: SharedRefresh.Waiter) {
        if currentRefresh == nil {
            refreshesStarted += 1
            let number = refreshesStarted
            currentRefresh = SharedRefresh(number: number)
            Task { await self.runRefresh(number) }
        }
        currentRefresh?.waiters[waiter] = continuation
        onRefreshChange()
    }

    private func cancelWaiter(_ waiter: Int) {
        currentRefresh?.waiters.removeValue(forKey: waiter)?.resume(returning: .failure(.cancelled))
    }

    func finishRefresh(with result: Result<String, AccountError>) {
        let waiters = currentRefresh?.waiters.values.map(\.self) ?? []
        currentRefresh = nil
        for waiter in waiters { waiter.resume(returning: result) }
        onRefreshChange()
    }

    /// Refreshes, unless the account has changed since: then the response is dropped.
    ///
    /// A lost response is requested once more. Each try reads the store again: while the first try waited, another
    /// process might have used the successor, and the server would treat the first try's token as stolen.
    private func runRefresh(_ number: Int) async {
        guard currentRefresh?.number == number else { return }
        var isSecondTry = false
        do throws(AccountError) {
            if let ownSession {
                let token = try await token(of: ownSession, isRenewed: true)
                if currentRefresh?.number == number { finishRefresh(with: .success(token)) }
                return
            }
            let former = try cache.pair()
            let formerToken = former?.accessToken
            for _ in 1...Self.maximumRounds {
                guard let sent = try cache.pairForRefresh() else { return leaveAccount(with: .signedOut) }
                // Another process of the app might have signed another user in. The calls that wait are the former
                // user's. The pair that this process had belongs to its own session, whatever user the response names:
                // the server can join two users.
                let isOwnPair = sent.refreshToken == former?.refreshToken
                if !isOwnPair, TokenPair.isOfAnotherUser(sent.accessToken, than: formerToken) {
                    return leaveAccount(with: .sessionReplaced)
                }
                // Another process has refreshed.
                if let accessToken = sent.accessToken, accessToken != formerToken, !isExpiring(accessToken) {
                    return finishRefresh(with: .success(accessToken))
                }
                let result = await exchange(sent.refreshToken)
                guard currentRefresh?.number == number else { return }
                switch result {
                case .success(let tokens):
                    if cache.replace(sent: sent, with: tokens.pair) {
                        if !isOwnPair, TokenPair.isOfAnotherUser(tokens.accessToken, than: formerToken) {
                            return leaveAccount(with: .sessionReplaced)
                        }
                        return finishRefresh(with: .success(tokens.accessToken))
                    }
                case .failure(let error) where error.endsSession:
                    // Only the refusal of the stored token counts: a newer one might be valid.
                    if try cache.remove(refused: sent) { return leaveAccount(with: .signedOut) }
                case .failure(.unreachable) where !isSecondTry: isSecondTry = true
                case .failure(let error): return finishRefresh(with: .failure(error))
                }
            }
            finishRefresh(with: .failure(.unreachable(.unknown)))
        } catch {
            if currentRefresh?.number == number { finishRefresh(with: .failure(error)) }
        }
    }

    /// Exchanges a refresh token for new tokens.
    private func exchange(_ refreshToken: String) async -> Result<TokenGrantResponse, AccountError> {
        do throws(AccountError) {
            var request = try jsonRequest("POST", "api/auth/refresh", body: ["refresh_token": refreshToken])
            request.timeoutInterval = Self.refreshTimeout
            return .success(try await refreshedTokens(by: request, redacting: refreshToken))
        } catch {
            return .failure(error)
        }
    }

    /// Returns the tokens of a refresh, if the response is not too old by the device's clock.
    private func refreshedTokens(by request: URLRequest, redacting secret: String) async throws(AccountError)
        -> TokenGrantResponse
    {
        let sentAt = now()
        let tokens = try await issuedTokens(by: request, redacting: secret)
        guard abs(now().timeIntervalSince(sentAt)) < Self.maximumResponseAge else { throw .unreachable(.timedOut) }
        return tokens
    }

    /// Sends a request without a bearer, and returns the issued tokens.
    func issuedTokens(by request: URLRequest, redacting secret: String) async throws(AccountError)
        -> TokenGrantResponse
    {
        let tokens = try Self.read(
            TokenGrantResponse.self,
            from: try await transport(request, false),
            redacting: [secret]
        )
        guard !tokens.accessToken.isEmpty, !tokens.refreshToken.isEmpty else { throw .unreadableResponse(status: 200) }
        return tokens
    }
}

/// A refresh in progress, and the calls that wait for it.
struct SharedRefresh {
    typealias Waiter = CheckedContinuation<Result<String, AccountError>, Never>

    let number: Int
    var waiters: [Int: Waiter] = [:]
}

/// The tokens as the server issues them.
struct TokenGrantResponse: Decodable, Sendable {
    enum CodingKeys: String, CodingKey {
        case accessToken = "access_token"
        case refreshToken = "refresh_token"
    }

    let accessToken: String
    let refreshToken: String

    var pair: TokenPair { TokenPair(accessToken: accessToken, refreshToken: refreshToken) }
}

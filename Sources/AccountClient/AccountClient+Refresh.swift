import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A refresh in progress, and the calls that wait for it.
struct SharedRefresh {
    typealias Waiter = CheckedContinuation<Result<String, AccountError>, Never>

    let number: Int
    var waiters: [Int: Waiter] = [:]
}

extension AccountClient {
    /// An access token with less time than this is refreshed before it is used.
    private static let leastTimeLeft: TimeInterval = 60

    /// The limit of one request for new tokens.
    ///
    /// The server accepts a spent refresh token until its successor is presented, so a request whose answer was lost
    /// can be repeated at any time. The limit is short because the callers wait for two tries at most.
    private static let refreshTimeout: TimeInterval = 8

    /// The greatest age of an answer that is stored, counted from its request.
    ///
    /// A process can be suspended while it waits. When it continues, another process may have sent the same token
    /// again, and the server's grace of a minute may be over. Dropping an answer is safe as long as its tokens were
    /// never used: the request can be repeated.
    private static let greatestAge: TimeInterval = 30

    /// The number of times that a refresh starts again because another process of the app has stored other tokens.
    private static let mostRounds = 4

    /// Refreshes the tokens if the access token has less than a minute left, once for all callers.
    ///
    /// - Throws: ``AccountError/signedOut`` if the server has ended the session; the tokens are removed then.
    ///   ``AccountError/tokenStore(_:domain:code:)`` if the new tokens could not be saved; they are kept in memory, and
    ///   saved by the next call for which the store works.
    public func refreshTokensIfNeeded() async throws(AccountError) {
        guard let pair = try cache.pair() else { throw .signedOut }
        let isUsable = pair.accessToken.map { !isEnding($0) } ?? false
        if flight != nil || !isUsable { _ = try await refreshed() }
        if let failure = cache.unsaved { throw failure }
    }

    /// Refreshes the tokens even if they are fresh, once for all concurrent callers.
    ///
    /// - Throws: As ``refreshTokensIfNeeded()``.
    public func forceRefresh() async throws(AccountError) {
        guard try cache.pair() != nil else { throw .signedOut }
        _ = try await refreshed()
        if let failure = cache.unsaved { throw failure }
    }

    /// `true` if a token has too little time left.
    ///
    /// One without a readable expiry is used until the server refuses it.
    func isEnding(_ token: String) -> Bool {
        AccessTokenClaims.expiry(of: token).map { $0.timeIntervalSince(now()) < Self.leastTimeLeft } ?? false
    }

    /// Returns the access token of the refresh in progress, or of one that starts now.
    ///
    /// A cancelled caller returns immediately. The refresh continues for the other callers, and because its answer may
    /// hold the only valid token.
    func refreshed() async throws(AccountError) -> String {
        waitersCounted += 1
        let waiter = waitersCounted
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: SharedRefresh.Waiter) in
                guard !Task.isCancelled else { return continuation.resume(returning: .failure(.cancelled)) }
                joinFlight(waiter, continuation)
            }
        } onCancel: {
            Task { await self.leaveFlight(waiter) }
        }
        return try result.get()
    }

    /// The number of calls that wait for the refresh in progress.
    package var waitingCalls: Int { flight?.waiters.count ?? 0 }

    /// `true` while a refresh is in progress.
    package var isRefreshing: Bool { flight != nil }

    private func joinFlight(_ waiter: Int, _ continuation: SharedRefresh.Waiter) {
        if flight == nil {
            flightsStarted += 1
            let number = flightsStarted
            flight = SharedRefresh(number: number)
            Task { await self.fly(number) }
        }
        flight?.waiters[waiter] = continuation
    }

    private func leaveFlight(_ waiter: Int) {
        flight?.waiters.removeValue(forKey: waiter)?.resume(returning: .failure(.cancelled))
    }

    func endFlight(with result: Result<String, AccountError>) {
        let waiters = flight?.waiters.values.map(\.self) ?? []
        flight = nil
        for waiter in waiters { waiter.resume(returning: result) }
    }

    /// Refreshes, unless the account has changed since: then the answer is void and is not stored.
    ///
    /// A lost answer is requested once more. Each try reads the store again: while the first try waited, another
    /// process may have used the successor, and the server would treat the first try's token as stolen.
    private func fly(_ number: Int) async {
        guard flight?.number == number else { return }
        var isSecondTry = false
        do throws(AccountError) {
            let known = try cache.pair()?.accessToken
            for _ in 1...Self.mostRounds {
                guard let sent = try cache.pairForRefresh() else { return leaveAccount(with: .signedOut) }
                // Another process has refreshed.
                if let accessToken = sent.accessToken, accessToken != known, !isEnding(accessToken) {
                    return endFlight(with: .success(accessToken))
                }
                let answer = await exchange(sent.refreshToken)
                guard flight?.number == number else { return }
                switch answer {
                case .success(let tokens):
                    if cache.replace(sent: sent, with: tokens.pair) {
                        return endFlight(with: .success(tokens.accessToken))
                    }
                case .failure(let error) where error.endsSession:
                    // Only the refusal of the stored token counts: a newer one may be valid.
                    if try cache.remove(refused: sent) { return leaveAccount(with: .signedOut) }
                case .failure(.unreachable) where !isSecondTry: isSecondTry = true
                case .failure(let error): return endFlight(with: .failure(error))
                }
            }
            endFlight(with: .failure(.unreachable(.unknown)))
        } catch {
            endFlight(with: .failure(error))
        }
    }

    /// Exchanges a refresh token for new tokens.
    private func exchange(_ refreshToken: String) async -> Result<TokenGrantResponse, AccountError> {
        do throws(AccountError) {
            var request = try jsonRequest("POST", "api/auth/refresh", body: ["refresh_token": refreshToken])
            request.timeoutInterval = Self.refreshTimeout
            return .success(try await freshTokens(by: request, leavingOut: refreshToken))
        } catch {
            return .failure(error)
        }
    }

    /// Returns the server's answer to a refresh, if the answer is not too old by the device's clock.
    private func freshTokens(by request: URLRequest, leavingOut secret: String) async throws(AccountError)
        -> TokenGrantResponse
    {
        let sentAt = now()
        let tokens = try await issuedTokens(by: request, leavingOut: secret)
        guard abs(now().timeIntervalSince(sentAt)) < Self.greatestAge else { throw .unreachable(.timedOut) }
        return tokens
    }

    /// Returns the server's answer to a request without a bearer.
    func issuedTokens(by request: URLRequest, leavingOut secret: String) async throws(AccountError)
        -> TokenGrantResponse
    {
        let tokens = try ResponseDecoder.read(
            TokenGrantResponse.self,
            from: try await transport.send(request),
            leavingOut: [secret]
        )
        guard !tokens.accessToken.isEmpty, !tokens.refreshToken.isEmpty else { throw .unreadableAnswer(status: 200) }
        return tokens
    }
}

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One refresh under way, and those who wait for it.
struct RefreshFlight {
    typealias Waiter = CheckedContinuation<Result<String, AccountError>, Never>

    let number: Int
    var waiters: [Int: Waiter] = [:]
}

extension AccountClient {
    /// An access token with less time than this is refreshed before it is used.
    private static let leastTimeLeft: TimeInterval = 60

    /// The time that one request for new tokens may take.
    ///
    /// The server accepts a spent refresh token as long as its successor was never presented, so a lost answer can be asked
    /// for again at any time. Short, because the callers wait for two tries at most.
    private static let refreshTimeout: TimeInterval = 8

    /// The greatest age of an answer that is stored, counted from its request.
    ///
    /// A process can be suspended while it waits. By the time it goes on, another process may have sent the same token
    /// again, and the server's grace of a minute for overtaking requests may be over. An answer that was never used costs
    /// nothing: its request can be repeated.
    private static let greatestAge: TimeInterval = 30

    /// The number of times that a refresh starts again because another process of the app has stored other tokens.
    private static let mostRounds = 4

    /// Refreshes the tokens when the access token has less than a minute left, once for all callers.
    ///
    /// - Throws: ``AccountError/signedOut`` when the server has ended the session, and the tokens are gone;
    ///   ``AccountError/tokenStore(_:domain:code:)`` when the new tokens could not be saved: they are held, and saved with
    ///   the next call that finds the store working.
    public func refreshTokensIfNeeded() async throws(AccountError) {
        guard let pair = try cache.pair() else { throw .signedOut }
        let isUsable = pair.accessToken.map { !isEnding($0) } ?? false
        if flight != nil || !isUsable { _ = try await refreshed() }
        if let failure = cache.unsaved { throw failure }
    }

    /// Refreshes the tokens whatever time they have left, once for all callers who ask at the same time.
    ///
    /// - Throws: As ``refreshTokensIfNeeded()``.
    public func forceRefresh() async throws(AccountError) {
        guard try cache.pair() != nil else { throw .signedOut }
        _ = try await refreshed()
        if let failure = cache.unsaved { throw failure }
    }

    /// Whether a token has too little time left; one that does not tell is used until the server refuses it.
    func isEnding(_ token: String) -> Bool {
        AccessToken.expiry(of: token).map { $0.timeIntervalSince(now()) < Self.leastTimeLeft } ?? false
    }

    /// The access token of the refresh that is under way, or of one that starts now.
    ///
    /// A caller who is cancelled leaves at once; the refresh goes on for the others, and for the token's sake.
    func refreshed() async throws(AccountError) -> String {
        waitersCounted += 1
        let waiter = waitersCounted
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: RefreshFlight.Waiter) in
                guard !Task.isCancelled else { return continuation.resume(returning: .failure(.cancelled)) }
                joinFlight(waiter, continuation)
            }
        } onCancel: {
            Task { await self.leaveFlight(waiter) }
        }
        return try result.get()
    }

    /// The number of calls that wait for the refresh under way.
    package var waitingCalls: Int { flight?.waiters.count ?? 0 }

    /// `true` while a refresh is under way.
    package var isRefreshing: Bool { flight != nil }

    private func joinFlight(_ waiter: Int, _ continuation: RefreshFlight.Waiter) {
        if flight == nil {
            flightsStarted += 1
            let number = flightsStarted
            flight = RefreshFlight(number: number)
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

    /// Refreshes, unless the account that asked for it has gone: then the answer is void, and stored nowhere.
    ///
    /// A lost answer is asked for once more. Each try reads the store again: while the answer was awaited, another process
    /// may have used its successor, and then the token of the first try looks like a thief's.
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
                    // Only the stored token's refusal counts: a newer one may be good.
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

    /// Spends a refresh token.
    private func exchange(_ refreshToken: String) async -> Result<IssuedTokens, AccountError> {
        do throws(AccountError) {
            var request = try jsonRequest("POST", "api/auth/refresh", body: ["refresh_token": refreshToken])
            request.timeoutInterval = Self.refreshTimeout
            return .success(try await freshTokens(by: request, leavingOut: refreshToken))
        } catch {
            return .failure(error)
        }
    }

    /// The tokens that the server answers to a refresh, if the answer is not too old by the device's clock.
    private func freshTokens(by request: URLRequest, leavingOut secret: String) async throws(AccountError)
        -> IssuedTokens
    {
        let sentAt = now()
        let tokens = try await issuedTokens(by: request, leavingOut: secret)
        guard abs(now().timeIntervalSince(sentAt)) < Self.greatestAge else { throw .unreachable(.timedOut) }
        return tokens
    }

    /// The tokens that the server answers to a request without a bearer.
    func issuedTokens(by request: URLRequest, leavingOut secret: String) async throws(AccountError) -> IssuedTokens {
        let tokens = try Answers.read(
            IssuedTokens.self,
            from: try await transport.send(request),
            leavingOut: [secret]
        )
        guard !tokens.accessToken.isEmpty, !tokens.refreshToken.isEmpty else { throw .unreadableAnswer(status: 200) }
        return tokens
    }
}

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

    /// How long an answer to a refresh is awaited before it is asked for again.
    ///
    /// The server repeats its answer to a refresh token for ten seconds after it was spent; asked again within them, a
    /// refresh whose answer was lost on the way still succeeds.
    private static let refreshTimeout: TimeInterval = 8

    /// Refreshes the tokens when the access token has less than a minute left, once for all callers.
    ///
    /// - Throws: ``AccountError/signedOut`` when the server refused with 401, and the tokens are gone;
    ///   ``AccountError/tokenStore(_:domain:code:)`` when the new tokens could not be saved: they are held, and saved with
    ///   the next call that finds the store working.
    public func refreshTokensIfNeeded() async throws(AccountError) {
        guard let pair = try shelf.pair() else { throw .signedOut }
        let isUsable = pair.accessToken.map { !isEnding($0) } ?? false
        if flight != nil || !isUsable { _ = try await refreshed() }
        if let failure = shelf.unsaved { throw failure }
    }

    /// Refreshes the tokens whatever time they have left, once for all callers who ask at the same time.
    ///
    /// - Throws: As ``refreshTokensIfNeeded()``.
    public func forceRefresh() async throws(AccountError) {
        guard try shelf.pair() != nil else { throw .signedOut }
        _ = try await refreshed()
        if let failure = shelf.unsaved { throw failure }
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
    private func fly(_ number: Int) async {
        guard flight?.number == number else { return }
        let outcome: Result<String, AccountError>
        do {
            let known = try shelf.pair()
            guard let spent = try shelf.pairForRefresh() else { return endSessionHere() }
            if let accessToken = spent.accessToken, accessToken != known?.accessToken, !isEnding(accessToken) {
                return endFlight(with: .success(accessToken))
            }
            let tokens = try await exchange(spent.refreshToken)
            guard flight?.number == number else { return }
            shelf.put(tokens.pair)
            outcome = .success(tokens.accessToken)
        } catch {
            guard flight?.number == number else { return }
            if case .refused(status: 401, _, _) = error { return endSessionHere() }
            outcome = .failure(error)
        }
        endFlight(with: outcome)
    }

    private func endSessionHere() {
        // Tokens that the store would not remove are refused again after the next start, and removed then.
        _ = shelf.clear()
        leaveAccount(with: .signedOut)
    }

    /// Spends a refresh token; a lost answer is asked for once more.
    private func exchange(_ refreshToken: String) async throws(AccountError) -> IssuedTokens {
        var request = try jsonRequest("POST", "api/auth/refresh", body: ["refresh_token": refreshToken])
        request.timeoutInterval = Self.refreshTimeout
        do {
            return try await issuedTokens(by: request, leavingOut: refreshToken)
        } catch {
            guard case .unreachable = error else { throw error }
            return try await issuedTokens(by: request, leavingOut: refreshToken)
        }
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

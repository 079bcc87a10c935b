package import Base
internal import Crypto
package import GoogleOAuth
package import Scheduler
internal import Storage
private import Synchronization

/// The codes that apps bring: each is spent once, and a repeated request gets the first response.
///
/// An exchange does not end with its request. A phone that lost the connection sends the code again, and Google would
/// refuse it, so the repetition waits for the first exchange or gets its outcome.
///
/// The process has one of these, and its data is a ``CodeExchangeState``. A request takes it with the client that is
/// configured now (``ConfiguredCodeExchanges``) and makes a ``CodeConnector``, which asks it for the outcome of the
/// code. For a new code it calls back: then the connector exchanges the code and stores the grant.
package final class CodeExchanges: Sendable {
    /// How long a request waits for the end of an exchange.
    static let maximumWait: Duration = .seconds(25)
    /// The time at the end of a stop in which a cancelled exchange can end. One that waits for the store might not.
    static let timeToEnd: Duration = .milliseconds(250)

    enum Outcome: Sendable {
        case stored(ConnectedGrant)
        /// The code is spent or useless, so a repetition gets the same error.
        case refused(AppError)
        /// The code might still be good, so a repetition is a new exchange.
        case failed(any Error)

        var isFinal: Bool {
            switch self {
            case .stored, .refused: true
            case .failed: false
            }
        }
    }

    /// What the response says about a stored grant, without its tokens: it is remembered.
    struct ConnectedGrant: Sendable {
        let relation: ConnectionRules.Relation
        let id: GrantID
        let scope: String
        /// `nil` without a code.
        var lacksRefreshToken: Bool?
    }

    /// Returns the client that exchanges the codes now, and to which their grants belong, or `nil` if none is
    /// configured.
    ///
    /// A reload can change it.
    package let client: @Sendable () -> OAuthClientCredentials?
    let endpoint: any Google
    /// `true` if the refresh tokens are bound to the ring's binding key (`bind-tokens`).
    let bindsTokens: Bool
    /// Writes tokens that the store does not take durably elsewhere, sealed, so that the next process finds them.
    private let save: @Sendable ([ExchangedTokens]) async throws -> Void
    private let time: any TimeSource
    private let state = Mutex(CodeExchangeState())

    package init(
        client: @escaping @Sendable () -> OAuthClientCredentials?,
        endpoint: any Google,
        bindsTokens: Bool = false,
        save: @escaping @Sendable ([ExchangedTokens]) async throws -> Void,
        time: any TimeSource
    ) {
        self.client = client
        self.endpoint = endpoint
        self.bindsTokens = bindsTokens
        self.save = save
        self.time = time
    }

    // MARK: Requests

    /// Returns the grant that a code leads to, by the first exchange of the code. The exchange continues if the caller
    /// is cancelled, because the code might be spent already.
    func connectedGrant(
        by key: CodeKey,
        ofUser userID: String,
        account: String,
        target: ConnectionTarget,
        exchange: @escaping @Sendable () async -> Outcome
    ) async throws -> ConnectedGrant {
        let outcome = try begin(key, ofUser: userID, account: account, target: target, exchange: exchange)
        guard await waitForEnd(of: key) else { throw AppError.stillConnecting }
        switch await outcome.value {
        case .stored(let connected): return connected
        case .refused(let error): throw error
        case .failed(let error): throw error
        }
    }

    private func begin(
        _ key: CodeKey,
        ofUser userID: String,
        account: String,
        target: ConnectionTarget,
        exchange: @escaping @Sendable () async -> Outcome
    ) throws(AppError) -> Task<Outcome, Never> {
        let now = time.sinceBoot
        return try state.withLock { (state) throws(AppError) -> Task<Outcome, Never> in
            if let known = try state.known(key, ofUser: userID, account: account, target: target, at: now) {
                return known
            }
            try state.checkMayBegin()
            let outcome = Task {
                let outcome = await exchange()
                end(key, with: outcome)
                return outcome
            }
            state.begin(
                key,
                as: CodeExchangeState.Entry(userID: userID, account: account, target: target, outcome: outcome)
            )
            return outcome
        }
    }

    private func end(_ key: CodeKey, with outcome: Outcome) {
        let now = time.sinceBoot
        let waiters = state.withLock { $0.end(key, isOutcomeKept: outcome.isFinal, at: now) }
        for waiter in waiters { waiter.result.resume(returning: true) }
    }

    /// Waits for the end of an exchange. It returns `false` if that takes too long, or if the worker stops before.
    private func waitForEnd(of key: CodeKey) async -> Bool {
        let number = state.withLock { $0.nextNumber() }
        // Nothing of a request that no longer waits stays behind: an exchange can last as long as the store fails.
        defer { state.withLock { $0.removeWaiter(number: number) }?.limit.cancel() }
        return await withCheckedContinuation { caller in
            let result = FirstResult(caller)
            let waiter = CodeExchangeState.Waiter(key: key, result: result, limit: timeLimit(of: result))
            let hasEnded = state.withLock { state in
                state.add(waiter, number: number)
                return !state.isInProgress(key)
            }
            if hasEnded { result.resume(returning: true) }
        }
    }

    private func timeLimit(of result: FirstResult) -> Task<Void, Never> {
        Task { [time] in
            do {
                try await time.sleep(for: Self.maximumWait)
            } catch {
                return
            }
            result.resume(returning: false)
        }
    }

    // MARK: What an exchange reports

    /// Counts a code of another client, and returns `true` once several users have brought one since a code worked.
    func countForeign(of userID: String) -> Bool { state.withLock { $0.countForeign(of: userID) } }

    /// Records that Google has accepted a code of the client.
    func forgetForeign() { state.withLock { $0.forgetForeign() } }

    /// Keeps the tokens of Google's response until they are stored. `nil` means that they are, or never will be.
    func hold(_ tokens: ExchangedTokens?, for key: CodeKey) { state.withLock { $0.hold(tokens, for: key) } }

    /// `true` while tokens that came with an access token of this account are not stored.
    func holdsTokens(ofAccount account: String) -> Bool { state.withLock { $0.holdsTokens(ofAccount: account) } }

    /// Revokes a token apart from its request, which does not wait for it.
    func revoke(_ body: @escaping @Sendable () async -> Void) {
        state.withLock { state in
            let number = state.nextNumber()
            let revocation = Task {
                await body()
                self.state.withLock { $0.removeRevocation(number: number) }
            }
            state.add(revocation: revocation, number: number)
        }
    }

    // MARK: Stopping

    var isStopping: Bool { state.withLock(\.isStopping) }

    /// Waits until no exchange and no revocation is in progress.
    func waitUntilNothingIsInProgress() async {
        for exchange in state.withLock(\.inProgress) { _ = await exchange.value }
        for revocation in state.withLock(\.revocationsInProgress) { await revocation.value }
    }

    /// Begins no more exchanges, and lets those in progress end until the deadline. Tokens that the store has not taken
    /// by then go to the spill file.
    package func stop(within grace: Duration) async -> UnstoredResults {
        state.withLock { $0.stop() }
        await time.wait(atMost: grace) { await self.waitUntilNothingIsInProgress() }
        await cancelAll()
        defer {
            for waiter in state.withLock(\.allWaiters) { waiter.result.resume(returning: false) }
        }
        return await saveHeldTokens()
    }

    private func cancelAll() async {
        let exchanges = state.withLock(\.inProgress)
        for exchange in exchanges { exchange.cancel() }
        for revocation in state.withLock(\.revocationsInProgress) { revocation.cancel() }
        guard !exchanges.isEmpty else { return }
        await time.wait(atMost: Self.timeToEnd) { for exchange in exchanges { _ = await exchange.value } }
    }

    private func saveHeldTokens() async -> UnstoredResults {
        let held = state.withLock(\.heldTokens).filter { $0.refreshToken != nil }
        guard !held.isEmpty else { return .none }
        var unstored = UnstoredResults.none
        do {
            try await save(held)
            unstored.spilled = held.count
        } catch {
            unstored.lost = held.count
        }
        return unstored
    }
}

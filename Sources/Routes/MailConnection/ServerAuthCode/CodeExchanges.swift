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
        let grant: GrantID
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
    /// Writes tokens that the store does not take durably elsewhere, sealed, so that the next process finds them.
    private let save: @Sendable ([ExchangedTokens]) async throws -> Void
    private let time: any TimeSource
    private let list = Mutex(CodeExchangeList())

    package init(
        client: @escaping @Sendable () -> OAuthClientCredentials?,
        endpoint: any Google,
        save: @escaping @Sendable ([ExchangedTokens]) async throws -> Void,
        time: any TimeSource
    ) {
        self.client = client
        self.endpoint = endpoint
        self.save = save
        self.time = time
    }

    // MARK: Requests

    /// Returns the connection that a code leads to, by the first exchange of the code. The exchange continues if the
    /// caller is cancelled, because the code might be spent already.
    func connection(
        by key: CodeKey,
        ofUser userID: String,
        account: String,
        exchange: @escaping @Sendable () async -> Outcome
    ) async throws -> ConnectedGrant {
        let outcome = try begin(key, ofUser: userID, account: account, exchange: exchange)
        guard await waitForEnd(of: key) else { throw AppError.stillConnecting }
        switch await outcome.value {
        case .stored(let connection): return connection
        case .refused(let error): throw error
        case .failed(let error): throw error
        }
    }

    private func begin(
        _ key: CodeKey,
        ofUser userID: String,
        account: String,
        exchange: @escaping @Sendable () async -> Outcome
    ) throws(AppError) -> Task<Outcome, Never> {
        let now = time.sinceBoot
        return try list.withLock { (list) throws(AppError) -> Task<Outcome, Never> in
            if let known = try list.known(key, ofUser: userID, account: account, at: now) { return known }
            try list.checkMayBegin()
            let outcome = Task {
                let outcome = await exchange()
                end(key, with: outcome)
                return outcome
            }
            list.begin(key, as: CodeExchangeList.Entry(userID: userID, account: account, outcome: outcome))
            return outcome
        }
    }

    private func end(_ key: CodeKey, with outcome: Outcome) {
        let now = time.sinceBoot
        let waiters = list.withLock { $0.end(key, isOutcomeKept: outcome.isFinal, at: now) }
        for waiter in waiters { waiter.result.resume(returning: true) }
    }

    /// Waits for the end of an exchange. It returns `false` if that takes too long, or if the worker stops before.
    private func waitForEnd(of key: CodeKey) async -> Bool {
        let number = list.withLock { $0.nextNumber() }
        // Nothing of a request that no longer waits stays behind: an exchange can last as long as the store fails.
        defer { list.withLock { $0.removeWaiter(number: number) }?.limit.cancel() }
        return await withCheckedContinuation { caller in
            let result = FirstResult(caller)
            let waiter = CodeExchangeList.Waiter(key: key, result: result, limit: timeLimit(of: result))
            let hasEnded = list.withLock { list in
                list.add(waiter, number: number)
                return !list.isInProgress(key)
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
    func countForeign(of userID: String) -> Bool { list.withLock { $0.countForeign(of: userID) } }

    /// Records that Google has accepted a code of the client.
    func forgetForeign() { list.withLock { $0.forgetForeign() } }

    /// Keeps the tokens of Google's response until they are stored. `nil` means that they are, or never will be.
    func hold(_ tokens: ExchangedTokens?, for key: CodeKey) { list.withLock { $0.hold(tokens, for: key) } }

    /// `true` while tokens that came with an access token of this account are not stored.
    func holdsTokens(ofAccount account: String) -> Bool { list.withLock { $0.holdsTokens(ofAccount: account) } }

    /// Revokes a token apart from its request, which does not wait for it.
    func revoke(_ body: @escaping @Sendable () async -> Void) {
        list.withLock { list in
            let number = list.nextNumber()
            let revocation = Task {
                await body()
                self.list.withLock { $0.removeRevocation(number: number) }
            }
            list.add(revocation: revocation, number: number)
        }
    }

    // MARK: Stopping

    var isStopping: Bool { list.withLock(\.isStopping) }

    /// Waits until no exchange and no revocation is in progress.
    func waitUntilNothingIsInProgress() async {
        for exchange in list.withLock(\.inProgress) { _ = await exchange.value }
        for revocation in list.withLock(\.revocationsInProgress) { await revocation.value }
    }

    /// Begins no more exchanges, and lets those in progress end until the deadline. Tokens that the store has not taken
    /// by then go to the spill file.
    package func stop(within grace: Duration) async -> UnstoredResults {
        list.withLock { $0.stop() }
        await time.wait(atMost: grace) { await self.waitUntilNothingIsInProgress() }
        await cancelAll()
        defer {
            for waiter in list.withLock(\.allWaiters) { waiter.result.resume(returning: false) }
        }
        return await saveHeldTokens()
    }

    private func cancelAll() async {
        let exchanges = list.withLock(\.inProgress)
        for exchange in exchanges { exchange.cancel() }
        for revocation in list.withLock(\.revocationsInProgress) { revocation.cancel() }
        guard !exchanges.isEmpty else { return }
        await time.wait(atMost: Self.timeToEnd) { for exchange in exchanges { _ = await exchange.value } }
    }

    private func saveHeldTokens() async -> UnstoredResults {
        let held = list.withLock(\.heldTokens).filter { $0.refreshToken != nil }
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

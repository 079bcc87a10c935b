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
    /// The time for which the outcome of an exchange is kept after its end.
    static let memory: Duration = .seconds(60)
    /// The time that a request waits for the end of an exchange.
    static let maximumWait: Duration = .seconds(25)
    /// More phones than that cannot wait for Google at once.
    static let maximumInProgress = 64
    private static let maximumKept = 4096
    /// The time at the end of a stop in which a cancelled exchange can end; one that waits for the store might not.
    static let timeToEnd: Duration = .milliseconds(250)

    /// The outcome of an exchange.
    enum Outcome: Sendable {
        case stored(Connection)
        /// The code is spent or useless, so a repetition gets the same error.
        case refused(APIError)
        /// The code might still be good, so a repetition is a new exchange.
        case failed(any Error)
    }

    /// What the response says about a stored grant, without its tokens: it is remembered.
    struct Connection: Sendable {
        let relation: ConnectionRules.Relation
        let grant: GrantID
        let scope: String
        /// `nil` without a code.
        var lacksRefreshToken: Bool?
    }

    private struct Entry {
        let userID: String
        /// The account of the access token that came with the code.
        let account: String
        let outcome: Task<Outcome, Never>
        /// The tokens from Google's answer until they are stored.
        var tokens: ExchangedTokens?
        /// The end of the exchange, or `nil` while it is in progress.
        var endedAt: BootInstant?

        var isInProgress: Bool { endedAt == nil }
    }

    /// A request that waits for the end of the exchange with this key.
    private typealias Waiter = (key: [UInt8], result: FirstResult, limit: Task<Void, Never>)

    private struct State {
        /// The exchanges by the hash of their code: the search for a hash shows nothing about the code.
        var entries: [[UInt8]: Entry] = [:]
        var revocations: [Int: Task<Void, Never>] = [:]
        var waiters: [Int: Waiter] = [:]
        private var lastNumber = 0
        var isStopping = false
        /// Users who brought a code of another client since the last code that worked.
        var foreignUsers: Set<String> = []

        mutating func nextNumber() -> Int {
            lastNumber += 1
            return lastNumber
        }

        /// The key of the exchange that ended first.
        var oldestEnded: [UInt8]? {
            var oldest: (key: [UInt8], endedAt: BootInstant)?
            for (key, entry) in entries {
                guard let endedAt = entry.endedAt, endedAt < oldest?.endedAt ?? .latest else { continue }
                oldest = (key, endedAt)
            }
            return oldest?.key
        }
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
    private let state = Mutex(State())

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

    /// Counts a code of another client, and returns `true` once three users have brought one since a code worked.
    ///
    /// One user alone can bring any code.
    func countForeign(of userID: String) -> Bool {
        state.withLock { state in
            if state.foreignUsers.count < 3 { state.foreignUsers.insert(userID) }
            return state.foreignUsers.count == 3
        }
    }

    /// Records that Google has accepted a code of the client.
    func forgetForeign() { state.withLock { $0.foreignUsers = [] } }

    /// Returns the connection that a code leads to, by the first exchange of the code.
    ///
    /// The exchange continues if the caller is cancelled, because the code may be spent already.
    func connection(
        by code: Secret,
        ofUser userID: String,
        _ account: String,
        exchange: @escaping @Sendable (_ key: [UInt8]) async -> Outcome
    ) async throws -> Connection {
        let key = code.withBytes { Digest.sha256($0) }
        let outcome = try begin(key, ofUser: userID, account, exchange)
        guard await hasEnded(key) else { throw APIError.stillConnecting }
        switch await outcome.value {
        case .stored(let connection): return connection
        case .refused(let error): throw error
        case .failed(let error): throw error
        }
    }

    /// Waits for the end of an exchange; returns `false` if that takes too long, or if the worker stops before.
    private func hasEnded(_ key: [UInt8]) async -> Bool {
        let number = state.withLock { $0.nextNumber() }
        // Nothing of a request that no longer waits stays behind: an exchange can last as long as the store fails.
        defer { state.withLock { $0.waiters.removeValue(forKey: number) }?.limit.cancel() }
        return await withCheckedContinuation { caller in
            let result = FirstResult(caller)
            let limit = Task { [time] in
                do {
                    try await time.sleep(for: Self.maximumWait)
                } catch {
                    return
                }
                result.resume(returning: false)
            }
            let hasEnded = state.withLock { state in
                state.waiters[number] = (key, result, limit)
                return state.entries[key]?.isInProgress != true
            }
            if hasEnded { result.resume(returning: true) }
        }
    }

    private func begin(
        _ key: [UInt8],
        ofUser userID: String,
        _ account: String,
        _ exchange: @escaping @Sendable (_ key: [UInt8]) async -> Outcome
    ) throws(APIError) -> Task<Outcome, Never> {
        let now = time.sinceBoot
        return try state.withLock { (state) throws(APIError) -> Task<Outcome, Never> in
            state.entries = state.entries.filter { $0.value.endedAt.map { now - $0 < Self.memory } ?? true }
            if let entry = state.entries[key] {
                // Another user's code is a stolen one, or belongs to someone who shares the phone.
                guard entry.userID == userID else { throw .refusedCode }
                guard entry.account == account else { throw .codeOfOtherAccount }
                return entry.outcome
            }
            let inProgress = state.entries.values.count(where: \.isInProgress)
            guard !state.isStopping, inProgress < Self.maximumInProgress else { throw .stillConnecting }
            if state.entries.count >= Self.maximumKept, let oldest = state.oldestEnded {
                state.entries[oldest] = nil
            }
            let outcome = Task {
                let outcome = await exchange(key)
                end(key, with: outcome)
                return outcome
            }
            state.entries[key] = Entry(userID: userID, account: account, outcome: outcome)
            return outcome
        }
    }

    private func end(_ key: [UInt8], with outcome: Outcome) {
        let now = time.sinceBoot
        let waiters = state.withLock { state in
            // Tokens that are still held go to the spill file.
            if state.entries[key]?.tokens == nil {
                if case .failed = outcome { state.entries[key] = nil } else { state.entries[key]?.endedAt = now }
            }
            return state.waiters.values.filter { $0.key == key }
        }
        for waiter in waiters { waiter.result.resume(returning: true) }
    }

    /// Keeps the tokens of Google's answer until they are stored; `nil` if they are, or never will be.
    func hold(_ tokens: ExchangedTokens?, for key: [UInt8]) {
        state.withLock { $0.entries[key]?.tokens = tokens }
    }

    /// `true` while tokens that came with an access token of this account are not stored.
    func holdsTokens(ofAccount account: String) -> Bool {
        state.withLock { $0.entries.values.contains { $0.account == account && $0.tokens != nil } }
    }

    /// Revokes a token apart from its request, which does not wait for it.
    func revoke(_ body: @escaping @Sendable () async -> Void) {
        state.withLock { state in
            let number = state.nextNumber()
            state.revocations[number] = Task {
                await body()
                self.state.withLock { $0.revocations[number] = nil }
            }
        }
    }

    /// Waits until no exchange and no revocation is in progress.
    func waitUntilNothingIsInProgress() async {
        for task in exchangesInProgress { _ = await task.value }
        for task in state.withLock({ Array($0.revocations.values) }) { await task.value }
    }

    var isStopping: Bool { state.withLock(\.isStopping) }

    private var exchangesInProgress: [Task<Outcome, Never>] {
        state.withLock { $0.entries.values.filter(\.isInProgress).map(\.outcome) }
    }

    /// Begins no more exchanges, and lets those in progress end until the deadline.
    ///
    /// Tokens that the store has not taken by then go to the spill file.
    package func stop(within grace: Duration) async -> UnstoredResults {
        state.withLock { $0.isStopping = true }
        await time.wait(atMost: grace) { await self.waitUntilNothingIsInProgress() }
        let exchanges = exchangesInProgress
        for task in exchanges { task.cancel() }
        for task in state.withLock({ Array($0.revocations.values) }) { task.cancel() }
        if !exchanges.isEmpty {
            await time.wait(atMost: Self.timeToEnd) { for task in exchanges { _ = await task.value } }
        }
        defer {
            for waiter in state.withLock({ Array($0.waiters.values) }) { waiter.result.resume(returning: false) }
        }
        let held = state.withLock { $0.entries.values.compactMap(\.tokens) }.filter { $0.refreshToken != nil }
        var unstored = UnstoredResults.none
        guard !held.isEmpty else { return unstored }
        do {
            try await save(held)
            unstored.spilled = held.count
        } catch {
            unstored.lost = held.count
        }
        return unstored
    }
}

extension BootInstant {
    fileprivate static let latest = BootInstant(milliseconds: .max)
}

extension APIError {
    /// The code is spent, has expired, or is of another client or user.
    static let refusedCode = APIError(
        400,
        "INVALID_CODE",
        "Google does not accept this server_auth_code: it can be used once, soon after the sign-in; sign in again"
    )
    /// No server client is configured.
    static let noServerClient = APIError(
        400,
        "INVALID_CODE",
        "This server takes no server_auth_code: it has no server client id"
    )
    /// The account of the code is not that of the access token.
    static let codeOfOtherAccount = APIError(
        400,
        "INVALID_CREDENTIALS",
        "The server_auth_code belongs to another Google account than the access_token"
    )
    /// The exchange has not ended yet, or too many others are in progress.
    static let stillConnecting: APIError = {
        var error = APIError(503, "DEPENDENCY_FAILURE", "The connection is not stored yet; send the same code again")
        error.retryAfter = .seconds(5)
        return error
    }()
}

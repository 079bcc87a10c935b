internal import Base
internal import Scheduler

/// The data of ``CodeExchanges``, which changes it under its lock: the exchanges in progress and those that ended
/// lately, with the requests that wait for one.
struct CodeExchangeState {
    /// How long the outcome of an exchange is kept after its end.
    static let memory: Duration = .seconds(60)
    /// More phones than that cannot wait for Google at once.
    static let maximumInProgress = 64
    private static let maximumKept = 4096
    /// One user alone can bring any code, so this many must bring one of another client.
    static let enoughUsersOfForeignCodes = 3

    struct Entry {
        let userID: String
        /// The account of the access token that came with the code.
        let account: String
        /// The connection that the code was for.
        let target: ConnectionTarget
        let outcome: Task<CodeExchanges.Outcome, Never>
        /// The tokens from Google's response until they are stored.
        var tokens: ExchangedTokens?
        /// The end of the exchange, or `nil` while it is in progress.
        var endedAt: BootInstant?

        var isInProgress: Bool { endedAt == nil }

        func isRemembered(at now: BootInstant) -> Bool {
            guard let endedAt else { return true }
            return now - endedAt < CodeExchangeState.memory
        }
    }

    /// A request that waits for the end of an exchange.
    struct Waiter {
        let key: CodeKey
        let result: FirstResult
        let limit: Task<Void, Never>
    }

    private var entries: [CodeKey: Entry] = [:]
    private var waiters: [Int: Waiter] = [:]
    private var revocations: [Int: Task<Void, Never>] = [:]
    private var lastNumber = 0
    /// Users who brought a code of another client since the last code that worked.
    private var usersOfForeignCodes: Set<String> = []
    private(set) var isStopping = false

    mutating func stop() { isStopping = true }

    mutating func nextNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    // MARK: Exchanges

    /// Returns the exchange of a code that the same user brought before, or `nil` for a new code.
    mutating func known(
        _ key: CodeKey,
        ofUser userID: String,
        account: String,
        target: ConnectionTarget,
        at now: BootInstant
    ) throws(AppError) -> Task<CodeExchanges.Outcome, Never>? {
        entries = entries.filter { $0.value.isRemembered(at: now) }
        guard let entry = entries[key] else { return nil }
        // Another user's code is a stolen one, or belongs to someone who shares the phone. Two ids can differ only in
        // their bytes: é in one character, or as e with an accent.
        guard entry.userID.utf8.elementsEqual(userID.utf8) else { throw .refusedCode }
        // For another connection the code is spent, and the first response would name the wrong one.
        guard entry.target == target else { throw .refusedCode }
        guard entry.account == account else { throw .codeOfOtherAccount }
        return entry.outcome
    }

    func checkMayBegin() throws(AppError) {
        let inProgress = entries.values.count(where: \.isInProgress)
        guard !isStopping, inProgress < Self.maximumInProgress else { throw .stillConnecting }
    }

    mutating func begin(_ key: CodeKey, as entry: Entry) {
        if entries.count >= Self.maximumKept, let oldest = oldestEnded { entries[oldest] = nil }
        entries[key] = entry
    }

    /// Ends an exchange, and returns the requests that wait for it. `isOutcomeKept` is `false` if a repetition must be
    /// a new exchange.
    mutating func end(_ key: CodeKey, isOutcomeKept: Bool, at now: BootInstant) -> [Waiter] {
        // Tokens that are still held go to the spill file.
        if entries[key]?.tokens == nil {
            if isOutcomeKept {
                entries[key]?.endedAt = now
            } else {
                entries[key] = nil
            }
        }
        return waiters.values.filter { $0.key == key }
    }

    func isInProgress(_ key: CodeKey) -> Bool { entries[key]?.isInProgress == true }

    var inProgress: [Task<CodeExchanges.Outcome, Never>] { entries.values.filter(\.isInProgress).map(\.outcome) }

    private var oldestEnded: CodeKey? {
        var oldest: (key: CodeKey, endedAt: BootInstant)?
        for (key, entry) in entries {
            guard let endedAt = entry.endedAt else { continue }
            if let oldest, oldest.endedAt <= endedAt { continue }
            oldest = (key, endedAt)
        }
        return oldest?.key
    }

    // MARK: Tokens

    mutating func hold(_ tokens: ExchangedTokens?, for key: CodeKey) { entries[key]?.tokens = tokens }

    func holdsTokens(ofAccount account: String) -> Bool {
        entries.values.contains { $0.account == account && $0.tokens != nil }
    }

    var heldTokens: [ExchangedTokens] { entries.values.compactMap(\.tokens) }

    // MARK: Waiters

    var allWaiters: [Waiter] { Array(waiters.values) }

    mutating func add(_ waiter: Waiter, number: Int) { waiters[number] = waiter }

    mutating func removeWaiter(number: Int) -> Waiter? { waiters.removeValue(forKey: number) }

    // MARK: Revocations

    var revocationsInProgress: [Task<Void, Never>] { Array(revocations.values) }

    mutating func add(revocation: Task<Void, Never>, number: Int) { revocations[number] = revocation }

    mutating func removeRevocation(number: Int) { revocations[number] = nil }

    // MARK: Codes of another client

    /// Counts a code of another client, and returns `true` once enough users have brought one since a code worked.
    mutating func countForeign(of userID: String) -> Bool {
        if usersOfForeignCodes.count < Self.enoughUsersOfForeignCodes { usersOfForeignCodes.insert(userID) }
        return usersOfForeignCodes.count == Self.enoughUsersOfForeignCodes
    }

    mutating func forgetForeign() { usersOfForeignCodes = [] }
}

import Base
import Crypto
import Storage
import Synchronization

/// Makes callers wait until it is opened.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [CheckedContinuation<Void, Never>] = []
        var observers: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func pass() async {
        await withCheckedContinuation { caller in
            let (isOpen, observers) = state.withLock { state in
                defer { state.observers = [] }
                if !state.isOpen { state.waiting.append(caller) }
                return (state.isOpen, state.observers)
            }
            for observer in observers { observer.resume() }
            if isOpen { caller.resume() }
        }
    }

    /// Returns once a caller waits.
    func waitForCaller() async {
        await withCheckedContinuation { observer in
            let isMet = state.withLock { state in
                if state.waiting.isEmpty { state.observers.append(observer) }
                return !state.waiting.isEmpty
            }
            if isMet { observer.resume() }
        }
    }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for caller in waiting { caller.resume() }
    }
}

/// A store whose transactions and claims fail on a test's request; all other calls pass through.
final class FailingStore: GrantStore {
    private struct State {
        var failures = 0
        var error = StoreError(.busy, "busy")
        var failed = 0
        var claims = 0
        var claimError: StoreError?
        var rescheduleFailures = 0
        var hasEndlessRetries = false
        var beforeClaim: @Sendable (_ number: Int) async -> Void = { _ in }
        var beforeTransaction: @Sendable () -> Void = {}
    }

    private let inner: any GrantStore
    private let state = Mutex(State())

    private let gate: Gate?

    /// Creates the store; with a gate, every transaction waits until it is opened.
    init(_ inner: any GrantStore, gate: Gate? = nil) {
        self.inner = inner
        self.gate = gate
    }

    /// Makes the next `count` transactions fail.
    func failTransactions(_ count: Int, with code: StoreError.Code = .busy) {
        state.withLock {
            $0.failures = count
            $0.error = StoreError(code, "the test says so")
        }
    }

    /// Makes every claim fail; `nil` ends that.
    func failClaims(with code: StoreError.Code?) {
        state.withLock { $0.claimError = code.map { StoreError($0, "the test says so") } }
    }

    /// Makes the retries after an outage endless.
    func retryEndlessly() {
        state.withLock { $0.hasEndlessRetries = true }
    }

    /// Makes the next changes of due times after a step of the clock fail.
    func failReschedules(_ count: Int) {
        state.withLock { $0.rescheduleFailures = count }
    }

    /// Runs `action` at the beginning of each claim, numbered from one.
    func beforeClaim(_ action: @escaping @Sendable (_ number: Int) async -> Void) {
        state.withLock { $0.beforeClaim = action }
    }

    /// Runs `action` at the beginning of each transaction.
    func beforeTransaction(_ action: @escaping @Sendable () -> Void) {
        state.withLock { $0.beforeTransaction = action }
    }

    var failed: Int { state.withLock { $0.failed } }
    /// The number of claims that were requested.
    var claims: Int { state.withLock { $0.claims } }

    private func mayFail() throws {
        try state.withLock { state in
            guard state.failures > 0 else { return }
            state.failures -= 1
            state.failed += 1
            throw state.error
        }
    }

    func transact<Result: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Result
    ) async throws -> Result {
        state.withLock { $0.beforeTransaction }()
        if let gate { await gate.pass() }
        try mayFail()
        return try await inner.transact(body)
    }

    func leaseTime() async throws -> LeaseTime { try await inner.leaseTime() }

    func claim(
        _ ids: [GrantID],
        dueBy: Timestamp?,
        owner: String,
        for span: Duration,
        takesOver: Bool
    ) async throws -> [Grant] {
        let (number, action) = state.withLock { state in
            state.claims += 1
            return (state.claims, state.beforeClaim)
        }
        await action(number)
        if let error = state.withLock({ $0.claimError }) { throw error }
        return try await inner.claim(ids, dueBy: dueBy, owner: owner, for: span, takesOver: takesOver)
    }

    func renew(_ leases: [GrantID: Int64], for span: Duration) async throws -> Set<GrantID> {
        try await inner.renew(leases, for: span)
    }

    func release(_ leases: [GrantID: Int64]) async throws { try await inner.release(leases) }

    var bootID: String { inner.bootID }

    func clientsWithDueTimes() async throws -> [String] { try await inner.clientsWithDueTimes() }

    func due(ofClient client: String, by limit: Timestamp, after cursor: DueEntry?, atMost count: Int) async throws
        -> [DueEntry]
    {
        try await inner.due(ofClient: client, by: limit, after: cursor, atMost: count)
    }

    func expediteRetries(
        ofClient client: String,
        dueBy: Timestamp,
        after cursor: GrantID?,
        atMost count: Int
    ) async throws -> GrantID? {
        let next = try await inner.expediteRetries(ofClient: client, dueBy: dueBy, after: cursor, atMost: count)
        return state.withLock(\.hasEndlessRetries) ? GrantID(rawValue: 1) : next
    }

    func grant(_ id: GrantID) async throws -> Grant? { try await inner.grant(id) }

    func grant(ofUser userID: String) async throws -> Grant? { try await inner.grant(ofUser: userID) }

    func grants(after id: GrantID?, in state: GrantState?, atMost count: Int) async throws -> [Grant] {
        try await inner.grants(after: id, in: state, atMost: count)
    }

    func events(of id: GrantID, atMost count: Int) async throws -> [GrantEvent] {
        try await inner.events(of: id, atMost: count)
    }

    func grantStatistics(
        at now: Timestamp,
        refreshTokensEndingBefore end: Timestamp,
        idleSince: Timestamp
    ) async throws -> GrantStatistics {
        try await inner.grantStatistics(at: now, refreshTokensEndingBefore: end, idleSince: idleSince)
    }

    func keysInUse() async throws -> [KeyID: Int] { try await inner.keysInUse() }

    func rescheduleGrantsStoredAfter(_ now: Timestamp) async throws -> Int {
        try state.withLock { state in
            guard state.rescheduleFailures > 0 else { return }
            state.rescheduleFailures -= 1
            throw StoreError(.busy, "the test says so")
        }
        return try await inner.rescheduleGrantsStoredAfter(now)
    }

    func note(_ name: String) async throws -> String? { try await inner.note(name) }

    func replaceNote(_ name: String, _ former: String?, with text: String) async throws -> Bool {
        try await inner.replaceNote(name, former, with: text)
    }

    func report(_ worker: WorkerReport) async throws -> [WorkerReport] { try await inner.report(worker) }

    func liveWorkers() async throws -> [WorkerReport] { try await inner.liveWorkers() }

    func removeWorker(_ id: String) async throws { try await inner.removeWorker(id) }

    func clientHealth() async throws -> [String: [UInt8]] { try await inner.clientHealth() }

    func clockReading() async throws -> ClockReading? { try await inner.clockReading() }

    func record(_ reading: ClockReading) async throws { try await inner.record(reading) }

    func close() async { await inner.close() }
}

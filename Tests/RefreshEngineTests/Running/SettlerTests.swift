import Clocks
import GoogleOAuth
import Secrets
import Store
import Synchronization
import Testing

@testable import RefreshEngine

/// What cannot be stored waits, and is counted; what can be stored does not wait for it.
@Suite(.timeLimit(.minutes(1)))
struct SettlerTests {
    private let time = ManualTime()

    private func finding(_ number: Int64) -> Finding {
        Finding(
            attempt: Attempt(grant: GrantID(rawValue: number), clientID: "client", claim: 7, generation: 1),
            answer: .refused(.noAnswer(code: "timeout"), retryAfter: nil)
        )
    }

    @Test("a finding that the store refuses for good does not keep a later one from being stored, and is answered")
    func refusedFinding() async throws {
        let (troubles, trouble) = AsyncStream.makeStream(of: Void.self)
        let settler = Settler(
            store: RefusingStore(InMemoryStore(timeSource: time)),
            rules: RefreshRules(maxRate: 200),
            time: time,
            random: SeededRandom(seed: 1),
            onTrouble: { _, _ in trouble.yield() }
        )
        async let refused = settler.settle(finding(1))
        for await _ in troubles { break }
        #expect(await settler.settle(finding(2)) != nil)
        await settler.giveUp()
        #expect(await refused == nil)
    }

    @Test("what is being written when the worker gives up is answered as lost")
    func findingInHand() async throws {
        let (troubles, trouble) = AsyncStream.makeStream(of: Void.self)
        let settler = Settler(
            store: RefusingStore(InMemoryStore(timeSource: time), code: .diskFull, times: .max),
            rules: RefreshRules(maxRate: 200),
            time: time,
            random: SeededRandom(seed: 1),
            onTrouble: { _, _ in trouble.yield() }
        )
        async let lost = settler.settle(finding(1))
        for await _ in troubles { break }
        await settler.giveUp()
        #expect(await lost == nil)
    }
}

/// A store that refuses the first transactions, one unless told otherwise.
private final class RefusingStore: GrantStore {
    private let inner: InMemoryStore
    private let code: StoreError.Code
    private let left: Mutex<Int>

    init(_ inner: InMemoryStore, code: StoreError.Code = .corrupt, times: Int = 1) {
        self.inner = inner
        self.code = code
        left = Mutex(times)
    }

    func transact<Result: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Result
    ) async throws -> Result {
        let refuses = left.withLock { left in
            guard left > 0 else { return false }
            left -= 1
            return true
        }
        guard !refuses else { throw StoreError(code, "refused") }
        return try await inner.transact(body)
    }

    func leaseTime() async throws -> LeaseTime { try await inner.leaseTime() }

    func claim(_ ids: [GrantID], dueBy: Timestamp?, owner: String, for span: Duration) async throws -> [Grant] {
        try await inner.claim(ids, dueBy: dueBy, owner: owner, for: span)
    }

    func renew(_ leases: [GrantID: Int64], for span: Duration) async throws -> Set<GrantID> {
        try await inner.renew(leases, for: span)
    }

    func release(_ leases: [GrantID: Int64]) async throws { try await inner.release(leases) }

    func due(by limit: Timestamp, after cursor: DueEntry?, atMost count: Int) async throws -> [DueEntry] {
        try await inner.due(by: limit, after: cursor, atMost: count)
    }

    func grant(_ id: GrantID) async throws -> Grant? { try await inner.grant(id) }

    func grant(ofUser userID: String) async throws -> Grant? { try await inner.grant(ofUser: userID) }

    func grants(after id: GrantID?, in state: GrantState?, atMost count: Int) async throws -> [Grant] {
        try await inner.grants(after: id, in: state, atMost: count)
    }

    func events(of id: GrantID, atMost count: Int) async throws -> [GrantEvent] {
        try await inner.events(of: id, atMost: count)
    }

    func census(
        at now: Timestamp,
        refreshTokensEndingBefore end: Timestamp,
        idleSince: Timestamp
    ) async throws -> Census {
        try await inner.census(at: now, refreshTokensEndingBefore: end, idleSince: idleSince)
    }

    func keysInUse() async throws -> [KeyID: Int] { try await inner.keysInUse() }

    func rescheduleGrantsStoredAfter(_ now: Timestamp) async throws -> Int {
        try await inner.rescheduleGrantsStoredAfter(now)
    }

    func report(_ worker: WorkerReport) async throws -> [WorkerReport] { try await inner.report(worker) }

    func liveWorkers() async throws -> [WorkerReport] { try await inner.liveWorkers() }

    func forgetWorker(_ id: String) async throws { try await inner.forgetWorker(id) }

    func clientHealth() async throws -> [String: [UInt8]] { try await inner.clientHealth() }

    func exchangeClockReading(_ reading: ClockReading) async throws -> ClockReading? {
        try await inner.exchangeClockReading(reading)
    }

    func close() async { await inner.close() }
}

import Glibc
import Storage
import Synchronization
import Telemetry
import TestSupport

@testable import Base
@testable import Crypto
@testable import Scheduler

/// The lines of a metrics log, in memory.
///
/// It reads them when a test asks: a long simulation writes many, and most tests ask for none.
final class CapturedLines: LineSink {
    private struct State {
        var unread: [JSONLine] = []
        var read: [[String: String]] = []
    }

    private let state = Mutex(State())

    var droppedLines: Int { 0 }

    func write(_ line: JSONLine) -> Bool {
        state.withLock { $0.unread.append(line) }
        return true
    }

    /// Returns the texts in the lines of one event, in order.
    func of(_ event: String) -> [[String: String]] {
        state.withLock { state in
            state.read += state.unread.map(Self.texts)
            state.unread = []
            return state.read.filter { $0["event"] == event }
        }
    }

    private static func texts(in line: JSONLine) -> [String: String] {
        guard let members = JSONValue.object(in: line.bytes)?.object else {
            preconditionFailure("no JSON: \(line.text)")
        }
        return members.compactMapValues(\.string)
    }
}

/// Engines over one store, with a fake endpoint and clocks that only a test moves.
struct EngineFixture {
    static let clientID = "client"

    let time = ManualTime(immediateUpTo: .milliseconds(15))
    let random: SeededRandom
    let lines = CapturedLines()
    let google: FakeGoogle
    let store: TestStore
    let vault: TokenVault

    init(
        seed: UInt64 = 1,
        lifetime: Duration = .seconds(3600),
        rotates: Bool = false,
        isSharedByWorkers: Bool = false
    ) throws {
        random = SeededRandom(seed: seed)
        google = FakeGoogle(time: time, lifetime: lifetime, rotates: rotates)
        store = try TestStore(time: time, random: random, isSharedByWorkers: isSharedByWorkers)
        let ring = try KeyRing(keys: [RingKey.random()])
        vault = TokenVault(ring: try ReloadableKeyRing { ring })
    }

    /// Returns a worker on the store.
    ///
    /// Simulations read the due index once a minute, since these reads are their largest cost.
    func engine(
        _ name: String = "worker",
        scanInterval: Duration = .seconds(60),
        maxRate: Double = 200,
        spill: (any ResultSpill)? = nil,
        endpoint: (any AnsweringEndpoint)? = nil
    ) -> RefreshEngine {
        RefreshEngine(
            store: store,
            endpoint: endpoint ?? google,
            vault: vault,
            configuration: EngineConfiguration(
                workerName: name,
                maxRate: maxRate,
                maximumInFlight: 256,
                scanInterval: scanInterval,
                scanAhead: scanInterval * 2
            ),
            time: time,
            random: random,
            log: EngineLog(
                metrics: MetricsLog(sink: lines, worker: name, time: time),
                diagnostics: DiagnosticLog(level: .error, time: time, descriptor: Self.nowhere),
                counters: EventCounters(time: time),
                time: time
            ),
            spill: spill
        )
    }

    private static let nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC)

    // MARK: Grants

    /// Imports accounts: each has a refresh token and is due after `span`.
    func add(
        _ accounts: Range<Int>,
        of client: String = EngineFixture.clientID,
        dueIn span: Duration = .zero
    ) async throws {
        for account in accounts {
            let id = GrantID.random(from: random)
            let incoming = IncomingTokens(clientID: client, refreshToken: try refreshToken(account, for: id))
            let (grant, events) = Grant.connected(
                id: id,
                userID: "user \(account)",
                incoming: incoming,
                dueAt: time.now + span,
                at: time.now
            )
            try await store.database.transact { transaction in
                try transaction.insert(grant)
                for event in events { try transaction.record(event) }
            }
        }
    }

    func refreshToken(_ account: Int, version: Int = 0, for id: GrantID) throws -> Grant.RefreshToken {
        try vault.seal(refreshToken: Secret("refresh-\(account)-\(version)"), for: id)
    }

    func grant(_ account: Int) async throws -> Grant {
        guard let grant = try await store.database.grant(ofUser: "user \(account)") else {
            throw Missing(account: account)
        }
        return grant
    }

    struct Missing: Error { var account: Int }

    func grants() async throws -> [Grant] { try await store.database.grants(after: nil, in: nil, atMost: .max) }

    func states() async throws -> [GrantState: Int] {
        Dictionary(grouping: try await grants(), by: \.state).mapValues(\.count)
    }

    /// Acts as the app does: changes a stored grant and keeps the events.
    func change(_ account: Int, _ body: @escaping @Sendable (inout Grant) throws -> [GrantEvent]) async throws {
        try await store.database.transact { transaction in
            guard var grant = try transaction.grant(ofUser: "user \(account)") else { throw Missing(account: account) }
            let events = try body(&grant)
            try transaction.update(grant)
            for event in events { try transaction.record(event) }
        }
    }

    /// Returns the accounts whose stored access token is not the one that was issued last.
    func accountsWithLostToken() async throws -> [Int] {
        var lost: [Int] = []
        for grant in try await grants() {
            guard let account = Int(grant.userID.dropFirst("user ".count)) else { continue }
            let stored = try vault.openAccessToken(of: grant)?.reveal()
            if stored != google.account(account).accessToken { lost.append(account) }
        }
        return lost
    }

    // MARK: Time

    /// Lets time pass for engines whose loops run by themselves: each at the time it asked for, and again after a
    /// refresh has ended, but at most once in each `grain`.
    ///
    /// A coarse grain makes long simulations cheap: grants that fall due within it are refreshed together.
    func run(_ engines: [RefreshEngine], for span: Duration, grain: Duration = .milliseconds(100)) async {
        let end = time.sinceBoot + span
        while time.sinceBoot < end {
            var next = time.now + RefreshEngine.clockRecordInterval
            for engine in engines {
                next = min(next, await engine.runUntilQuiet())
                await engine.recordClock()
            }
            let wait = max(grain, next - time.now)
            time.advance(by: min(wait, end - time.sinceBoot))
        }
    }

    func run(_ engine: RefreshEngine, for span: Duration, grain: Duration = .milliseconds(100)) async {
        await run([engine], for: span, grain: grain)
    }

    /// Waits until all refreshes have ended, and lets time pass whenever something sleeps.
    func waitUntilIdle(_ engine: RefreshEngine) async {
        let passing = Task { [time] in
            while !Task.isCancelled {
                await time.sleepers(atLeast: 1)
                time.advance(by: .seconds(1))
            }
        }
        await engine.waitUntilIdle()
        passing.cancel()
        await passing.value
    }
}

extension RefreshEngine {
    /// Runs the loop until nothing is in flight and nothing more can be sent now; returns the time of the next
    /// iteration.
    func runUntilQuiet() async -> Timestamp {
        while true {
            let next = await runLoopIteration()
            guard await waitUntilIdle() else { return next }
        }
    }

    /// Waits until all refreshes except the excluded ones have ended; returns `true` if there were any.
    @discardableResult
    func waitUntilIdle(except excluded: Set<GrantID> = []) async -> Bool {
        var wasBusy = false
        while let (_, slot) = state.slots.first(where: { !excluded.contains($0.key) }) {
            wasBusy = true
            _ = await slot.completion.value
        }
        for task in outageRetries.values { await task.value }
        await healthyGrantSearch?.value
        return wasBusy
    }
}

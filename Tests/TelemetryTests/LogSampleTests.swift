import TestSupport
import Testing

@testable import Base
@testable import Scheduler
@testable import Storage
@testable import Telemetry

@Suite("A sample of the lines of plain successes")
struct LogSampleTests {
    private let lines = MemorySink()
    private let counters: EventCounters
    private let log: EngineLog

    init() {
        let time = ManualTime()
        counters = EventCounters(time: time)
        log = EngineLog(
            metrics: MetricsLog(sink: lines, worker: "w", time: time),
            diagnostics: DiagnosticLog(level: .error, time: time),
            counters: counters,
            time: time
        )
    }

    private static let plain = RefreshEvent(
        grant: GrantID(rawValue: 0xab),
        counted: CountedRefresh(outcome: .refreshed, lateness: .zero, latency: .milliseconds(1)),
        verdict: "granted",
        reason: "",
        attempt: 1
    )

    private func record(_ count: Int) {
        for _ in 0..<count / 10 { log.record([RefreshEvent](repeating: Self.plain, count: 10)) }
    }

    private var logged: [JSONValue] { lines.lines.compactMap { JSONValue.object(in: $0.bytes) } }

    /// The number of refreshes that the lines stand for.
    private var loggedRefreshes: Int64 {
        logged.reduce(0) { $0 + ($1["stands_for"]?.integer ?? 1) }
    }

    @Test(
        "stands for all of them, with what the summary counts as not logged",
        arguments: [(1, 250), (3, 83), (100, 2), (0, 0)]
    )
    func sampled(interval: Int, expected: Int) {
        log.sample(oneOf: interval)
        record(250)
        #expect(logged.count == expected)
        #expect(logged.allSatisfy { $0["stands_for"]?.integer == (interval == 1 ? nil : Int64(interval)) })
        let counts = counters.drain()
        #expect(counts.outcomes == [.refreshed: 250] && counts.notLogged == 250 - expected)
        #expect(counters.lifetime.refreshes[.refreshed] == 250)
        #expect(counters.drain().notLogged == 0)
    }

    @Test(
        "never leaves out a line that someone could miss",
        arguments: [
            { $0.counted.outcome = .retrying }, { $0.counted.outcome = .disconnected },
            { $0.counted.outcome = .void }, { $0.attempt = 2 }, { $0.rotated = true }, { $0.forced = true },
            { $0.lostScopes = ["openid"] },
        ] as [@Sendable (inout RefreshEvent) -> Void]
    )
    func always(change: @Sendable (inout RefreshEvent) -> Void) {
        log.sample(oneOf: 0)
        var event = Self.plain
        change(&event)
        log.record([Self.plain, event, Self.plain])
        #expect(logged.count == 1 && loggedRefreshes == 1)
    }

    @Test("changes with a reload, which begins to count again only if the value is another")
    func reloaded() {
        log.sample(oneOf: 100)
        record(60)
        log.sample(oneOf: 100)
        record(40)
        #expect(loggedRefreshes == 100)
        record(60)
        log.sample(oneOf: 50)
        record(40)
        #expect(logged.count == 1)
        record(10)
        #expect(logged.count == 2 && loggedRefreshes == 150)
        log.sample(oneOf: 1)
        record(10)
        #expect(logged.count == 12)
    }
}

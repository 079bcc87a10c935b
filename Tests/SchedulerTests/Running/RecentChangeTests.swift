import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import Scheduler
@testable import Storage

@Suite("The changes of state that the status page shows")
struct RecentChangeTests {
    private let lines = CapturedLines()
    private let log: EngineLog

    init() {
        let time = ManualTime()
        log = EngineLog(
            metrics: MetricsLog(sink: lines, worker: "w", time: time),
            diagnostics: DiagnosticLog(level: .error, time: time),
            counters: EventCounters(time: time),
            time: time
        )
    }

    @Test("are those of the metrics log: neither connections nor rotations")
    func logged() {
        let id = GrantID(rawValue: 7)
        let changes: [(from: GrantState?, to: GrantState, reason: GrantReason)] = [
            (nil, .active, .none), (.active, .active, .none),
            (.active, .retrying, GrantReason(rawValue: "server_error")),
            (.retrying, .active, .none),
        ]
        for (number, change) in changes.enumerated() {
            log.state(
                GrantEvent(
                    grant: id,
                    at: Timestamp(milliseconds: Int64(number)),
                    kind: .state,
                    from: change.from,
                    to: change.to,
                    reason: change.reason,
                    generation: 1
                )
            )
        }
        #expect(log.recentChanges.map(\.at) == [3, 2].map(Timestamp.init(milliseconds:)))
        #expect(log.recentChanges.map(\.to) == [.active, .retrying])
        #expect(log.recentChanges.map(\.from) == [.retrying, .active])
        #expect(log.recentChanges.map(\.reason) == [.none, GrantReason(rawValue: "server_error")])
        #expect(lines.of("state").count == 2)
    }

    @Test("are the last twenty, the newest first")
    func order() {
        for number: Int64 in 1...45 {
            log.state(
                GrantEvent(
                    grant: GrantID(rawValue: number),
                    at: Timestamp(milliseconds: number),
                    kind: .state,
                    from: .active,
                    to: .retrying,
                    reason: .none,
                    generation: 1
                )
            )
            let kept = (max(1, number - 19)...number).reversed()
            #expect(log.recentChanges.map(\.grant.rawValue) == Array(kept))
        }
    }
}

import Telemetry
import Testing

@testable import Base
@testable import Scheduler
@testable import Storage

@Suite("The changes of state that the status page shows")
struct RecentChangeTests {
    @Test("are those of the metrics log: neither connections nor rotations")
    func logged() {
        let time = ManualTime()
        let lines = CapturedLines()
        let log = EngineLog(
            metrics: MetricsLog(sink: lines, worker: "w", time: time),
            diagnostics: DiagnosticLog(level: .error, time: time),
            counters: IntervalCounters(time: time),
            time: time
        )
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
        #expect(
            log.recentChanges.all == [
                RecentChanges.Change(
                    at: Timestamp(milliseconds: 3),
                    grant: id.description,
                    from: "retrying",
                    to: "active",
                    reason: ""
                ),
                RecentChanges.Change(
                    at: Timestamp(milliseconds: 2),
                    grant: id.description,
                    from: "active",
                    to: "retrying",
                    reason: "server_error"
                ),
            ]
        )
        #expect(lines.of("state").count == 2)
    }
}

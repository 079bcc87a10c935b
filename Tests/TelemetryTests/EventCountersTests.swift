import TestSupport
import Testing

@testable import Base
@testable import Telemetry

@Suite("The counters of an interval")
struct EventCountersTests {
    @Test("return each count once", .timeLimit(.minutes(10)))
    func drains() async {
        let time = ManualTime()
        let counters = EventCounters(time: time)
        await withTaskGroup { group in
            for task in 0..<8 {
                group.addTask {
                    for _ in 0..<100 {
                        let outcome: RefreshOutcome = task < 6 ? .refreshed : .lostLease
                        let latency: Duration? = task < 6 ? .milliseconds(40) : nil
                        let lateness: Duration = .milliseconds(10 * task)
                        counters.record([CountedRefresh(outcome: outcome, lateness: lateness, latency: latency)])
                    }
                }
            }
        }
        time.advance(by: .seconds(10))
        let first = counters.drain()
        #expect(first.interval == .seconds(10))
        #expect(first.outcomes == [.refreshed: 600, .lostLease: 200])
        #expect(first.latency.percentile(0.99) == 40)
        #expect(first.lateness.percentile(0.5) == 30)

        time.advance(by: .seconds(5))
        let second = counters.drain()
        #expect(second.interval == .seconds(5))
        #expect(second.outcomes.isEmpty)
        #expect(second.latency.percentile(0.5) == nil)
        #expect(second.lateness.percentile(0.5) == nil)
    }
}

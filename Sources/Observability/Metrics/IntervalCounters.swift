package import Clocks
internal import JSON
private import Synchronization

/// Counts refreshes from many tasks: per interval, until the next summary, and in total since the start.
package final class IntervalCounters: Sendable {
    private struct State {
        var start: BootInstant
        var outcomes: [RefreshOutcome: Int] = [:]
        var latency = Histogram()
        var lateness = Histogram()
    }

    /// The totals, which only grow.
    package let running: LifetimeCounters
    private let time: any TimeSource
    private let state: Mutex<State>

    package init(time: any TimeSource) {
        self.time = time
        running = LifetimeCounters(time: time)
        state = Mutex(State(start: time.sinceBoot))
    }

    package func record(_ event: RefreshEvent) {
        running.record(event)
        state.withLock { state in
            state.outcomes[event.outcome, default: 0] += 1
            state.lateness.record(event.lateness.wholeMilliseconds)
            if let latency = event.latency { state.latency.record(latency.wholeMilliseconds) }
        }
    }

    /// Returns the counts since the last call, and resets them.
    package func drain() -> IntervalCounts {
        let now = time.sinceBoot
        return state.withLock { state in
            defer {
                state.start = now
                state.outcomes = [:]
                state.latency.reset()
                state.lateness.reset()
            }
            return IntervalCounts(
                interval: now - state.start,
                outcomes: state.outcomes,
                latency: Percentiles(state.latency),
                lateness: Percentiles(state.lateness)
            )
        }
    }
}

/// The counts of one interval.
package struct IntervalCounts: Sendable {
    package let interval: Duration
    /// The number of refreshes by outcome; a missing outcome did not occur.
    package let outcomes: [RefreshOutcome: Int]
    /// The milliseconds from sending a request to the end of its answer; `nil` without answers.
    package let latency: Percentiles?
    /// The milliseconds from a grant's due time to its try; `nil` without tries.
    package let lateness: Percentiles?
}

/// The median and the upper percentiles of a set of values.
package struct Percentiles: Sendable {
    package let p50: Int64
    package let p95: Int64
    package let p99: Int64

    init?(_ histogram: Histogram) {
        guard
            let p50 = histogram.percentile(0.50),
            let p95 = histogram.percentile(0.95),
            let p99 = histogram.percentile(0.99)
        else { return nil }
        self.p50 = p50
        self.p95 = p95
        self.p99 = p99
    }

    func write(_ quantity: String, into line: inout JSONLine) {
        line.field("\(quantity)_p50_ms", p50)
        line.field("\(quantity)_p95_ms", p95)
        line.field("\(quantity)_p99_ms", p99)
    }
}

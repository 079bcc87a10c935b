package import Clocks
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
    package let lifetime: LifetimeCounters
    private let time: any TimeSource
    private let state: Mutex<State>

    package init(time: any TimeSource) {
        self.time = time
        lifetime = LifetimeCounters(time: time)
        state = Mutex(State(start: time.sinceBoot))
    }

    package func record(_ refreshes: [RefreshEvent]) {
        lifetime.record(refreshes)
        state.withLock { state in
            for event in refreshes {
                state.outcomes[event.outcome, default: 0] += 1
                state.lateness.record(event.lateness.wholeMilliseconds)
                if let latency = event.latency { state.latency.record(latency.wholeMilliseconds) }
            }
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

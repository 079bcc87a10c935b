package import Base
private import Synchronization

/// Counts refreshes from many tasks: per interval until the next summary, in total since the start, and by minute and
/// hour until they are stored for the status page.
package final class IntervalCounters: Sendable {
    /// The totals, which only grow.
    package let lifetime: LifetimeCounters
    private let time: any TimeSource
    private let state: Mutex<State>

    private struct State {
        /// The beginning of the interval.
        var start: BootInstant
        var counts = IntervalCounts()
        var activity = RecentActivity()
    }

    package init(time: any TimeSource) {
        self.time = time
        lifetime = LifetimeCounters(time: time)
        state = Mutex(State(start: time.sinceBoot))
    }

    /// Counts refreshes, of which a number has no line in the metrics log.
    package func record(_ refreshes: [CountedRefresh], notLogged: Int = 0) {
        lifetime.record(refreshes)
        let now = time.now
        state.withLock { state in
            state.activity.record(refreshes, at: now)
            state.counts.notLogged += notLogged
            for index in refreshes.indices {
                state.counts.lateness.record(refreshes[index].lateness.wholeMilliseconds)
                if let latency = refreshes[index].latency { state.counts.latency.record(latency.wholeMilliseconds) }
            }
            for run in refreshes.outcomes { state.counts.outcomes[run.outcome, default: 0] += run.count }
        }
    }

    /// The refreshes that are not taken yet.
    package var activity: RecentActivity { state.withLock { $0.activity } }

    /// Returns the refreshes since the last call, to be stored.
    package func takeActivity() -> RecentActivity {
        state.withLock { state in
            defer { state.activity = RecentActivity() }
            return state.activity
        }
    }

    /// Takes back refreshes that could not be stored.
    package func restore(_ activity: RecentActivity) {
        let now = time.now
        state.withLock { $0.activity.add(activity, at: now) }
    }

    /// Returns the counts since the last call, and resets them.
    package func drain() -> IntervalCounts {
        let now = time.sinceBoot
        return state.withLock { state in
            var counts = state.counts
            counts.interval = now - state.start
            state.start = now
            state.counts = IntervalCounts()
            return counts
        }
    }
}

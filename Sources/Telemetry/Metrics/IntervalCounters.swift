package import Base
private import Synchronization

/// Counts refreshes from many tasks: per interval, until the next summary; in total since the start; and for each
/// minute of the last hour.
package final class IntervalCounters: Sendable {
    private struct State {
        var start: BootInstant
        var outcomes: [RefreshOutcome: Int] = [:]
        var latency = Histogram()
        var lateness = Histogram()
    }

    /// The totals, which only grow.
    package let lifetime: LifetimeCounters
    package let activity: RecentActivity
    private let time: any TimeSource
    private let state: Mutex<State>

    package init(time: any TimeSource) {
        self.time = time
        lifetime = LifetimeCounters(time: time)
        activity = RecentActivity(time: time)
        state = Mutex(State(start: time.sinceBoot))
    }

    package func record(_ refreshes: [RefreshEvent]) {
        lifetime.record(refreshes)
        activity.record(refreshes)
        state.withLock { state in
            for index in refreshes.indices {
                state.lateness.record(refreshes[index].lateness.wholeMilliseconds)
                if let latency = refreshes[index].latency { state.latency.record(latency.wholeMilliseconds) }
            }
            for (outcome, count) in refreshes.outcomes { state.outcomes[outcome, default: 0] += count }
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

extension [RefreshEvent] {
    /// The outcomes with their numbers; an outcome that comes again after another one is listed again.
    ///
    /// Most refreshes of a batch have the same outcome, so they are counted together.
    var outcomes: [(RefreshOutcome, Int)] {
        var runs: [(RefreshOutcome, Int)] = []
        for index in indices {
            let outcome = self[index].outcome
            if let last = runs.last, last.0 == outcome {
                runs[runs.count - 1].1 += 1
            } else {
                runs.append((outcome, 1))
            }
        }
        return runs
    }
}

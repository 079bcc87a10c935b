import Base
private import Synchronization

/// The refreshes of the last hour, by minute, in constant memory.
package final class RecentActivity: Sendable {
    /// The refreshes of one minute.
    package struct Minute: Hashable, Sendable {
        package var refreshed = 0
        /// The tries without a success, whatever the reason.
        package var failed = 0
        /// The longest time from a due time to its try.
        package var longestLateness: Duration = .zero
    }

    /// The number of minutes.
    package static let minuteCount = 60

    private struct State {
        /// A ring: the minute `n` since boot is at `n % minuteCount`.
        var minutes = [Minute](repeating: Minute(), count: minuteCount)
        /// The latest minute since boot that the ring has.
        var latest: Int64

        /// Empties the minutes that have begun since the latest one: at most all, however long the machine slept.
        mutating func advance(to minute: Int64) {
            guard minute > latest else { return }
            for next in max(latest + 1, minute - Int64(minuteCount) + 1)...minute {
                minutes[Int(next % Int64(minuteCount))] = Minute()
            }
            latest = minute
        }
    }

    private let time: any TimeSource
    private let state: Mutex<State>

    init(time: any TimeSource) {
        self.time = time
        state = Mutex(State(latest: Self.minute(time.sinceBoot)))
    }

    /// Counts refreshes that ended together, in the current minute.
    func record(_ refreshes: [RefreshEvent]) {
        // Summed up first: the lock is held, and the ring is indexed, once for each batch.
        var batch = Minute()
        for index in refreshes.indices {
            if refreshes[index].outcome == .refreshed { batch.refreshed += 1 } else { batch.failed += 1 }
            batch.longestLateness = max(batch.longestLateness, refreshes[index].lateness)
        }
        let now = Self.minute(time.sinceBoot)
        state.withLock { [batch] state in
            state.advance(to: now)
            let index = Int(state.latest % Int64(Self.minuteCount))
            state.minutes[index].refreshed += batch.refreshed
            state.minutes[index].failed += batch.failed
            state.minutes[index].longestLateness = max(state.minutes[index].longestLateness, batch.longestLateness)
        }
    }

    /// The last hour, the oldest minute first.
    ///
    /// The last one is not over yet.
    package var minutes: [Minute] {
        let now = Self.minute(time.sinceBoot)
        return state.withLock { state in
            state.advance(to: now)
            let next = Int(state.latest % Int64(Self.minuteCount)) + 1
            return Array(state.minutes[next...] + state.minutes[..<next])
        }
    }

    private static func minute(_ instant: BootInstant) -> Int64 { instant.milliseconds / 60_000 }
}

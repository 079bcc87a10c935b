package import Clocks
private import Synchronization

/// The refreshes of the last hour, by minute, in constant memory.
package final class RecentActivity: Sendable {
    /// The refreshes of one minute.
    package struct Minute: Hashable, Sendable {
        package var refreshed = 0
        /// The tries without a success, whatever the reason.
        package var failed = 0
        /// The longest time from a due time to its try.
        package var latestBy: Duration = .zero

        package init(refreshed: Int = 0, failed: Int = 0, latestBy: Duration = .zero) {
            self.refreshed = refreshed
            self.failed = failed
            self.latestBy = latestBy
        }
    }

    /// The number of minutes.
    package static let length = 60

    private struct State {
        /// A ring: the minute `n` since boot is at `n % length`.
        var minutes = [Minute](repeating: Minute(), count: length)
        /// The latest minute since boot that the ring has.
        var latest: Int64
    }

    private let time: any TimeSource
    private let state: Mutex<State>

    package init(time: any TimeSource) {
        self.time = time
        state = Mutex(State(latest: Self.minute(time.sinceBoot)))
    }

    /// Counts refreshes that ended together, in the current minute.
    func record(_ refreshes: [RefreshEvent]) {
        let now = Self.minute(time.sinceBoot)
        state.withLock { state in
            state.advance(to: now)
            let index = Int(state.latest % Int64(Self.length))
            for position in refreshes.indices {
                if refreshes[position].outcome == .refreshed {
                    state.minutes[index].refreshed += 1
                } else {
                    state.minutes[index].failed += 1
                }
                state.minutes[index].latestBy = max(state.minutes[index].latestBy, refreshes[position].lateness)
            }
        }
    }

    /// The last hour, the oldest minute first; the last one is not over yet.
    package var minutes: [Minute] {
        let now = Self.minute(time.sinceBoot)
        return state.withLock { state in
            state.advance(to: now)
            let next = Int(state.latest % Int64(Self.length)) + 1
            return Array(state.minutes[next...] + state.minutes[..<next])
        }
    }

    private static func minute(_ instant: BootInstant) -> Int64 { instant.milliseconds / 60_000 }
}

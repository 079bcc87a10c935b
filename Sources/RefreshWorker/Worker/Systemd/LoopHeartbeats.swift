import Base
import Synchronization

/// The time of the last iteration of each of the worker's loops, so that the watchdog is fed only while all of them
/// run.
final class LoopHeartbeats: Sendable {
    /// A loop that must keep running, even without work.
    enum Loop: String, CaseIterable, Hashable, Sendable {
        /// Reads the grants that are due.
        case scan
        /// Reports to the other workers through the store.
        case store
        /// Drives the requests in flight.
        case http
    }

    private let time: any TimeSource
    private let lastIterations: Mutex<[Loop: BootInstant]>

    /// Starts as if every loop had just completed an iteration, so each has one interval for its first.
    init(loops: Set<Loop> = Set(Loop.allCases), time: any TimeSource) {
        self.time = time
        let now = time.sinceBoot
        lastIterations = Mutex(Dictionary(uniqueKeysWithValues: loops.map { ($0, now) }))
    }

    /// Records an iteration of a loop.
    ///
    /// A loop that is not monitored is ignored.
    func record(_ loop: Loop) {
        let now = time.sinceBoot
        lastIterations.withLock { iterations in
            if iterations[loop] != nil {
                iterations[loop] = now
            }
        }
    }

    /// Returns the monitored loops without an iteration at or after an instant, sorted by name.
    func stalled(since instant: BootInstant) -> [Loop] {
        lastIterations.withLock { iterations in
            iterations.filter { $0.value < instant }.keys.sorted { $0.rawValue < $1.rawValue }
        }
    }
}

/// The decision whether to feed systemd's watchdog: a worker is alive only while all of its loops run. If it is not fed
/// for long, systemd kills and restarts the worker.
extension LoopHeartbeats {
    /// A healthy loop completes an iteration within this time: the slowest runs every five seconds, and a slow disk can
    /// delay it.
    private static let minimumTimeout: Duration = .seconds(20)
    /// Feeding more often would only cost time.
    private static let minimumPeriod: Duration = .milliseconds(100)

    /// Returns the pause between two decisions: half the watchdog's interval, as sd_watchdog_enabled(3) recommends.
    static func feedingPeriod(_ interval: Duration) -> Duration { max(interval / 2, minimumPeriod) }

    /// Returns the loops because of which the watchdog is not fed.
    ///
    /// A loop counts as running if it completed an iteration within the interval, or within 20 s if the interval is
    /// shorter.
    func stalled(within interval: Duration) -> [Loop] {
        stalled(since: time.sinceBoot - max(interval, Self.minimumTimeout))
    }
}

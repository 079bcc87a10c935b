import Clocks
private import Synchronization

/// The last turn of each of the worker's loops, so that the watchdog is fed only while all of them run.
final class LoopHeartbeats: Sendable {
    /// A loop that must keep running, even without work.
    enum Loop: String, CaseIterable, Hashable, Sendable {
        /// Looks for grants that are due.
        case scan
        /// Commits results.
        case store
        /// Drives the requests in flight.
        case http
    }

    private let time: any TimeSource
    private let lastTurns: Mutex<[Loop: BootInstant]>

    /// Starts as if every loop had just turned, which gives each one interval for its first turn.
    init(loops: Set<Loop> = Set(Loop.allCases), time: any TimeSource) {
        self.time = time
        let now = time.sinceBoot
        lastTurns = Mutex(Dictionary(uniqueKeysWithValues: loops.map { ($0, now) }))
    }

    /// Records a turn of a loop; a loop that is not watched is ignored.
    func beat(_ loop: Loop) {
        let now = time.sinceBoot
        lastTurns.withLock { turns in
            if turns[loop] != nil {
                turns[loop] = now
            }
        }
    }

    /// Returns the watched loops without a turn at or after an instant, sorted by name.
    func stalled(since instant: BootInstant) -> [Loop] {
        lastTurns.withLock { turns in
            turns.filter { $0.value < instant }.keys.sorted { $0.rawValue < $1.rawValue }
        }
    }
}

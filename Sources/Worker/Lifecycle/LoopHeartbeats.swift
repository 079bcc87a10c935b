import Base
private import Glibc
private import Synchronization

/// The time of the last iteration of each of the worker's loops, so that the watchdog is fed only while all of them
/// run.
final class LoopHeartbeats: Sendable {
    /// A loop that must keep running, even without work.
    enum Loop: String, CaseIterable, Hashable, Sendable {
        /// Reads the grants that are due.
        case scan
        /// Commits results.
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

/// The clock that systemd asks for in `MONOTONIC_USEC`.
///
/// The rest of the worker uses the boot clock of its `TimeSource`, which also runs while the machine is suspended.
/// systemd compares this number with its own CLOCK_MONOTONIC.
enum MonotonicClock {
    static var microseconds: Int64 {
        var point = timespec()
        // The clock exists on every Linux, so the call cannot fail.
        let result = unsafe clock_gettime(CLOCK_MONOTONIC, &point)  // time: allowed
        precondition(result == 0, "clock_gettime(CLOCK_MONOTONIC) failed with errno \(errno)")
        return Int64(point.tv_sec) * 1_000_000 + Int64(point.tv_nsec) / 1000
    }
}

/// Repeats an action until its task is cancelled.
enum PeriodicTask {
    static func run(
        every interval: Duration,
        by time: any TimeSource,
        immediately: Bool = true,
        _ action: () async -> Void
    ) async {
        if immediately { await action() }
        while !Task.isCancelled {
            do {
                try await time.sleep(for: interval)
            } catch {
                return
            }
            await action()
        }
    }
}

private import Glibc

/// The source of every time that is stored, compared or reported, and of the sleeps of tasks.
///
/// Two kinds of waits are the system's alone: timers of Dispatch, and threads that block in a call or in
/// ``SystemTime/blockThread(for:)``.
package protocol TimeSource: Sendable {
    /// The wall clock, which an administrator or NTP may step.
    var now: Timestamp { get }

    /// The time since this machine booted, which cannot be stepped and which continues while the machine is suspended.
    var sinceBoot: BootInstant { get }

    /// Suspends the task for this span; throws when the task is cancelled.
    func sleep(for span: Duration) async throws(CancellationError)
}

/// An instant of the boot clock: comparable only with instants of the same boot.
package struct BootInstant: Hashable, Comparable, Sendable, Codable {
    package var milliseconds: Int64

    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    package static func < (left: BootInstant, right: BootInstant) -> Bool { left.milliseconds < right.milliseconds }

    package static func + (point: BootInstant, span: Duration) -> BootInstant {
        BootInstant(milliseconds: point.milliseconds + span.wholeMilliseconds)
    }

    package static func - (left: BootInstant, right: BootInstant) -> Duration {
        .milliseconds(left.milliseconds - right.milliseconds)
    }
}

/// The clocks of the machine.
package struct SystemTime: TimeSource {
    package init() {}

    package var now: Timestamp { Timestamp(milliseconds: Self.read(CLOCK_REALTIME)) }

    package var sinceBoot: BootInstant { BootInstant(milliseconds: Self.read(CLOCK_BOOTTIME)) }

    package func sleep(for span: Duration) async throws(CancellationError) {
        do {
            try await Task.sleep(for: span)
        } catch {
            // Cancellation is the only error of a sleep.
            throw CancellationError()
        }
    }

    /// Blocks the calling thread, which must be one that only waits for a file or a database.
    package static func blockThread(for span: Duration) {
        usleep(useconds_t(clamping: span.wholeMilliseconds * 1000))
    }

    private static func read(_ clock: clockid_t) -> Int64 {
        var point = timespec()
        // Both clocks exist on every Linux since 2.6.39, so the call cannot fail.
        let result = unsafe clock_gettime(clock, &point)
        precondition(result == 0, "clock_gettime(\(clock)) failed with errno \(errno)")
        return Int64(point.tv_sec) * 1000 + Int64(point.tv_nsec) / 1_000_000
    }
}

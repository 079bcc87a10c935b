/// The source of times and of the sleeps of tasks, which a test can replace.
///
/// Timers of Dispatch do not use it, nor do threads that block in a call or in ``SystemTime/blockThread(for:)``.
/// docs/architecture.md (Clocks) lists the code that reads a clock of the system itself.
package protocol TimeSource: Sendable {
    /// The wall clock, which an administrator or NTP may step.
    var now: Timestamp { get }

    /// The time since this machine booted, which cannot be stepped and which continues while the machine is suspended.
    var sinceBoot: BootInstant { get }

    /// Suspends the task for this span; throws when the task is cancelled.
    func sleep(for span: Duration) async throws(CancellationError)
}

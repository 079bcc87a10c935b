/// The source of every time that is stored, compared or reported, and of the sleeps of tasks.
///
/// Two kinds of waits do not use it: timers of Dispatch, and threads that block in a call or in
/// ``SystemTime/blockThread(for:)``.
package protocol TimeSource: Sendable {
    /// The wall clock, which an administrator or NTP may step.
    var now: Timestamp { get }

    /// The time since this machine booted, which cannot be stepped and which continues while the machine is suspended.
    var sinceBoot: BootInstant { get }

    /// Suspends the task for this span; throws when the task is cancelled.
    func sleep(for span: Duration) async throws(CancellationError)
}

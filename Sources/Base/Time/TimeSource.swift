/// The source of times and of the sleeps of tasks, which a test can replace.
///
/// Timers of Dispatch do not use it, nor do threads that block in a call or in ``SystemTime/blockThread(for:)``.
/// `grep -rn 'time: allowed' Sources` lists the code that reads a clock of the system itself.
package protocol TimeSource: Sendable {
    /// The wall clock, which an administrator or NTP can step.
    var now: Timestamp { get }

    /// The time since this machine booted, which cannot be stepped and which continues while the machine is suspended.
    var sinceBoot: BootInstant { get }

    /// Suspends the task for this span, and throws when the task is cancelled.
    func sleep(for span: Duration) async throws(CancellationError)
}

extension TimeSource {
    /// Repeats an action until its task is cancelled.
    package func `repeat`(every interval: Duration, immediately: Bool = true, _ action: () async -> Void) async {
        if immediately { await action() }
        while !Task.isCancelled {
            do {
                try await sleep(for: interval)
            } catch {
                return
            }
            await action()
        }
    }
}

extension TimeSource {
    /// Runs `body`, and returns when it has ended or the time is up.
    ///
    /// In the latter case `body` continues.
    ///
    /// - Returns: `true` if `body` has ended.
    @discardableResult
    package func wait(atMost span: Duration, for body: @escaping @Sendable () async -> Void) async -> Bool {
        await withCheckedContinuation { caller in
            let result = FirstResult(caller)
            let work = Task {
                await body()
                result.resume(returning: true)
            }
            let limit = Task {
                do {
                    try await sleep(for: span)
                } catch {
                    return
                }
                if result.resume(returning: false) { work.cancel() }
            }
            Task {
                await work.value
                limit.cancel()
            }
        }
    }
}

private import Synchronization

/// Waits with a time limit.
package enum TimeLimit {
    /// Runs `body`, and returns when it has ended or the time is up; in the latter case `body` continues.
    ///
    /// - Returns: `true` if `body` has ended.
    @discardableResult
    package static func wait(
        atMost span: Duration,
        by time: any TimeSource,
        for body: @escaping @Sendable () async -> Void
    ) async -> Bool {
        await withCheckedContinuation { caller in
            let box = Box(caller)
            let work = Task {
                await body()
                box.resume(returning: true)
            }
            let limit = Task {
                do {
                    try await time.sleep(for: span)
                } catch {
                    return
                }
                if box.resume(returning: false) { work.cancel() }
            }
            Task {
                await work.value
                limit.cancel()
            }
        }
    }

    private final class Box: Sendable {
        private let caller: Mutex<CheckedContinuation<Bool, Never>?>

        init(_ caller: CheckedContinuation<Bool, Never>) {
            self.caller = Mutex(caller)
        }

        /// Resumes the caller the first time; returns `true` if it did.
        @discardableResult
        func resume(returning hasEnded: Bool) -> Bool {
            let caller = self.caller.withLock { caller in
                defer { caller = nil }
                return caller
            }
            caller?.resume(returning: hasEnded)
            return caller != nil
        }
    }
}

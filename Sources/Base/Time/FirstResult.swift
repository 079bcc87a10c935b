private import Synchronization

/// Resumes a waiting task with the first of several results.
package final class FirstResult: Sendable {
    private let caller: Mutex<CheckedContinuation<Bool, Never>?>

    package init(_ caller: CheckedContinuation<Bool, Never>) {
        self.caller = Mutex(caller)
    }

    /// Resumes the caller the first time, and returns `true` if it did.
    @discardableResult
    package func resume(returning result: Bool) -> Bool {
        let caller = self.caller.withLock { $0.take() }
        caller?.resume(returning: result)
        return caller != nil
    }
}

private import Synchronization

/// The look-up of one answer's account, which can be cancelled before and after it has begun.
///
/// It always ends by passing the answer on: a cancellation only ends the wait for Google.
final class AccountLookup: Sendable {
    private let state = Mutex<(task: Task<Void, Never>?, isCancelled: Bool)>((nil, false))

    func run(_ body: @escaping @Sendable () async -> Void) {
        state.withLock { state in
            let task = Task { await body() }
            if state.isCancelled { task.cancel() }
            state.task = task
        }
    }

    func cancel() {
        state.withLock { state in
            state.isCancelled = true
            state.task?.cancel()
        }
    }
}

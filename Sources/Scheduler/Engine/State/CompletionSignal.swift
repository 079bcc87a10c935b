import Synchronization

/// A signal of the end of a refresh, which any number of callers can await, before or after it.
final class CompletionSignal: Sendable {
    private struct State {
        var completion: RefreshCompletion?
        var waiters: [CheckedContinuation<RefreshCompletion, Never>] = []
    }

    private let state = Mutex(State())

    /// The end of the refresh; `nil` while it is in flight.
    var completion: RefreshCompletion? { state.withLock { $0.completion } }

    /// Waits for the end of the refresh.
    var value: RefreshCompletion {
        get async {
            await withCheckedContinuation { waiter in
                let completion = state.withLock { state in
                    if state.completion == nil { state.waiters.append(waiter) }
                    return state.completion
                }
                if let completion { waiter.resume(returning: completion) }
            }
        }
    }

    /// Wakes all waiting callers; only the first call counts.
    func complete(_ completion: RefreshCompletion) {
        let waiters = state.withLock { state in
            guard state.completion == nil else { return [CheckedContinuation<RefreshCompletion, Never>]() }
            state.completion = completion
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: completion) }
    }
}

import Synchronization

/// The end of a refresh, as reported to the callers that wait for it.
enum RefreshCompletion: Sendable {
    /// The decision about the result is committed.
    case committed(RefreshResult, StoredDecision)
    /// Another worker has the grant, or it was not due any more.
    case handledElsewhere
    /// The lease was given back, or the store failed, before there was an answer.
    case abandoned
    /// A revocation was given back until fewer are in flight.
    case deferred
    /// A caller's refresh was not claimed, for this reason.
    case refused(VendReason)
}

/// A signal of the end of a refresh, which any number of callers can await, before or after it.
final class CompletionSignal: Sendable {
    private struct State {
        var completion: RefreshCompletion?
        var waiters: [CheckedContinuation<RefreshCompletion, Never>] = []
    }

    private let state = Mutex(State())

    /// The end of the refresh, or `nil` while it is in flight.
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

    /// Wakes all waiting callers.
    ///
    /// Only the first call counts.
    func complete(_ completion: RefreshCompletion) {
        let waiters = state.withLock { state in
            guard state.completion == nil else { return [] as [CheckedContinuation<RefreshCompletion, Never>] }
            defer { state = State(completion: completion) }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: completion) }
    }
}

private import Dispatch
private import Synchronization

/// Notifies the waiting listeners that something changed; they look up the change themselves.
final class ChangeSignal: Sendable {
    private struct State {
        var next = 0
        var listeners: [Int: AsyncStream<Void>.Continuation] = [:]
    }

    private let state = Mutex(State())

    func announce() {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.yield() }
    }

    /// Returns the changes from now on.
    ///
    /// The stream ends with the listener's task, or when the time is over.
    func following(atMost span: Duration) -> AsyncStream<Void> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let number = state.withLock { state in
                state.next += 1
                state.listeners[state.next] = continuation
                return state.next
            }
            continuation.onTermination = { [self] _ in
                state.withLock { $0.listeners[number] = nil }
            }
            DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(Int(span.components.seconds))) {
                continuation.finish()
            }
        }
    }
}

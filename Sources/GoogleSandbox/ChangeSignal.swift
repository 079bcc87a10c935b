private import Dispatch
private import Synchronization

/// Notifies waiting tasks that the state has changed.
///
/// They then read the state.
final class ChangeSignal: Sendable {
    private struct State {
        var next = 0
        var listeners: [Int: AsyncStream<Void>.Continuation] = [:]
    }

    private let state = Mutex(State())

    func notify() {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.yield() }
    }

    /// Returns a stream with one element for each later change.
    ///
    /// The stream ends with the task that reads it, or after the time span.
    func changes(atMost span: Duration) -> AsyncStream<Void> {
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

import Synchronization

/// An event that tests and handlers wait for.
///
/// It may happen several times.
final class Event: Sendable {
    private struct State {
        var count = 0
        var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    /// Records that it happened once more.
    func happen() {
        let ready = state.withLock { state in
            state.count += 1
            let ready = state.waiters.filter { $0.count <= state.count }
            state.waiters.removeAll { $0.count <= state.count }
            return ready
        }
        for waiter in ready { waiter.continuation.resume() }
    }

    /// Returns when it has happened that many times.
    func wait(times: Int = 1) async {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                if state.count < times { state.waiters.append((times, continuation)) }
                return state.count >= times
            }
            if isReady { continuation.resume() }
        }
    }
}

/// Waits until the task ends.
func untilCancelled() async {
    let (stream, continuation) = AsyncStream<Never>.makeStream()
    for await _ in stream {}
    continuation.finish()
}

import Synchronization

/// The number of changes in the simulated processes, and a way to await the next one.
final class SimulationEvents: Sendable {
    private struct State {
        var count = 0
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    var count: Int { state.withLock { $0.count } }

    func record() {
        let waiter = state.withLock { state in
            state.count += 1
            return state.waiter.take()
        }
        waiter?.resume()
    }

    /// Returns once there are more events than `count`.
    func wait(after count: Int) async {
        await withCheckedContinuation { continuation in
            let hasPassed = state.withLock { state in
                if state.count == count { state.waiter = continuation }
                return state.count != count
            }
            if hasPassed { continuation.resume() }
        }
    }
}

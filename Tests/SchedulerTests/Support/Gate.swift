import Synchronization

/// Makes callers wait until it is opened.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [CheckedContinuation<Void, Never>] = []
        var observers: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func pass() async {
        await withCheckedContinuation { caller in
            let (isOpen, observers) = state.withLock { state in
                defer { state.observers = [] }
                if !state.isOpen { state.waiting.append(caller) }
                return (state.isOpen, state.observers)
            }
            for observer in observers { observer.resume() }
            if isOpen { caller.resume() }
        }
    }

    /// Returns once a caller waits.
    func waitForCaller() async {
        await withCheckedContinuation { observer in
            let isMet = state.withLock { state in
                if state.waiting.isEmpty { state.observers.append(observer) }
                return !state.waiting.isEmpty
            }
            if isMet { observer.resume() }
        }
    }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for caller in waiting { caller.resume() }
    }
}

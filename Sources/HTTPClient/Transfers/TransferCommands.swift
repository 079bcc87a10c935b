private import Synchronization

/// Commands from the callers of a client to its thread, and the thread's counters.
final class TransferCommands: Sendable {
    struct State {
        fileprivate(set) var submitted: [HTTPTransfer] = []
        fileprivate(set) var cancelled: [HTTPTransfer] = []
        fileprivate(set) var isClosed = false
        fileprivate var counters = HTTPClient.Counters()
        fileprivate var multi: MultiHandle?

        /// Wakes the client's thread for the first command only: it takes all of them after each wake.
        fileprivate func wakeUp() {
            if submitted.isEmpty, cancelled.isEmpty { multi?.wakeUp() }
        }
    }

    private let state: Mutex<State>

    init(waking multi: MultiHandle) {
        state = Mutex(State(multi: multi))
    }

    var counters: HTTPClient.Counters { state.withLock { $0.counters } }

    func publish(_ counters: HTTPClient.Counters) {
        state.withLock { $0.counters = counters }
    }

    /// Queues requests, and returns `false` if the client is shut down.
    func submit(_ transfers: [HTTPTransfer]) -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            guard !transfers.isEmpty else { return true }
            state.wakeUp()
            state.submitted += transfers
            return true
        }
    }

    func cancel(_ transfer: HTTPTransfer) {
        transfer.requestCancellation()
        state.withLock { state in
            guard !state.isClosed else { return }
            state.wakeUp()
            state.cancelled.append(transfer)
        }
    }

    /// Asks the client's thread to end.
    func close() {
        state.withLock { state in
            state.isClosed = true
            state.multi?.wakeUp()
        }
    }

    /// Removes and returns all commands.
    ///
    /// Only the client's thread calls it.
    func take() -> State {
        state.withLock { state in
            let taken = state
            state.submitted.removeAll(keepingCapacity: state.submitted.count <= 1024)
            state.cancelled = []
            return taken
        }
    }

    /// Releases libcurl's handle when the client's thread ends.
    func releaseHandle() {
        state.withLock { $0.multi = nil }
    }
}

private import Synchronization

/// The queue of orders from callers to the owner thread.
final class TransferCommands: Sendable {
    enum Order: Sendable {
        case submit(SubmittedRequest)
        case cancel(UInt64)
    }

    fileprivate struct State {
        var orders: [Order] = []
        var isClosed = false
        var multi: MultiHandle?
    }

    private let state: Mutex<State>
    private let lastID = Atomic<UInt64>(0)

    init(waking multi: MultiHandle) {
        state = Mutex(State(multi: multi))
    }

    func makeID() -> UInt64 {
        lastID.add(1, ordering: .relaxed).newValue
    }

    /// Queues requests; returns `false` if the client is shut down.
    func submit(_ tickets: [SubmittedRequest]) -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            for ticket in tickets { state.post(.submit(ticket)) }
            return true
        }
    }

    func cancel(_ id: UInt64) {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.post(.cancel(id))
        }
    }

    /// Asks the owner thread to end.
    func close() {
        state.withLock { state in
            state.isClosed = true
            state.multi?.wakeUp()
        }
    }

    /// Empties the inbox; called by the owner thread.
    func take() -> (orders: [Order], isClosed: Bool) {
        state.withLock { state in
            defer { state.orders.removeAll(keepingCapacity: state.orders.count <= 1024) }
            return (state.orders, state.isClosed)
        }
    }

    /// Releases libcurl's handle when the owner thread ends.
    func letGo() {
        state.withLock { $0.multi = nil }
    }
}

extension TransferCommands.State {
    /// Wakes the owner thread for the first order only: it empties the inbox after each wake.
    fileprivate mutating func post(_ order: TransferCommands.Order) {
        if orders.isEmpty { multi?.wakeUp() }
        orders.append(order)
    }
}

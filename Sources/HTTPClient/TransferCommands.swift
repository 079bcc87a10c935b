private import Synchronization

/// The queue of commands from callers to the client's thread.
final class TransferCommands: Sendable {
    enum Command: Sendable {
        case submit(SubmittedRequest)
        case cancel(UInt64)
    }

    fileprivate struct State {
        var commands: [Command] = []
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
    func submit(_ requests: [SubmittedRequest]) -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            for request in requests { state.append(.submit(request)) }
            return true
        }
    }

    func cancel(_ id: UInt64) {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.append(.cancel(id))
        }
    }

    /// Asks the client's thread to end.
    func close() {
        state.withLock { state in
            state.isClosed = true
            state.multi?.wakeUp()
        }
    }

    /// Removes and returns all commands; called by the client's thread.
    func take() -> (commands: [Command], isClosed: Bool) {
        state.withLock { state in
            defer { state.commands.removeAll(keepingCapacity: state.commands.count <= 1024) }
            return (state.commands, state.isClosed)
        }
    }

    /// Releases libcurl's handle when the client's thread ends.
    func releaseHandle() {
        state.withLock { $0.multi = nil }
    }
}

extension TransferCommands.State {
    /// Wakes the client's thread for the first command only: it takes all of them after each wake.
    fileprivate mutating func append(_ command: TransferCommands.Command) {
        if commands.isEmpty { multi?.wakeUp() }
        commands.append(command)
    }
}

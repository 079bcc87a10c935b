/// A reader of ``AccountClient/sessionStates`` or of ``AccountClient/sessionChanges``.
enum SessionObserver: Sendable {
    case states(AsyncStream<AccountClient.SessionState>.Continuation)
    case changes(AsyncStream<AccountClient.SessionChange>.Continuation)

    func yield(_ change: AccountClient.SessionChange) {
        switch self {
        case .states(let continuation): continuation.yield(change.state)
        case .changes(let continuation): continuation.yield(change)
        }
    }

    /// Tells a change to a reader that knows the former one. A reader of states is not told about another user.
    func yield(_ change: AccountClient.SessionChange, after former: AccountClient.SessionChange?) {
        if case .states = self, change.state == former?.state { return }
        yield(change)
    }

    func finish() {
        switch self {
        case .states(let continuation): continuation.finish()
        case .changes(let continuation): continuation.finish()
        }
    }
}

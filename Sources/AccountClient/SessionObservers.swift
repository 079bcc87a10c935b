internal import Foundation

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

/// The readers, and the last change that they know.
struct SessionObservers {
    private var observers: [UUID: SessionObserver] = [:]
    private var last: AccountClient.SessionChange?

    /// Tells the readers, unless the same user is signed in as before, or still none.
    mutating func publish(_ change: AccountClient.SessionChange) {
        if let last, last.state == change.state, last.user == change.user { return }
        let former = last
        last = change
        for observer in observers.values { observer.yield(change, after: former) }
    }

    mutating func add(_ observer: SessionObserver, as id: UUID) {
        observers[id] = observer
        if let last { observer.yield(last) }
    }

    mutating func remove(_ id: UUID) { observers[id] = nil }

    func finish() {
        for observer in observers.values { observer.finish() }
    }
}

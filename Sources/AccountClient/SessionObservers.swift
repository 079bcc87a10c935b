internal import Foundation

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

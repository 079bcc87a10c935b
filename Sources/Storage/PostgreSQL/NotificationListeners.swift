private import Synchronization

/// The listeners to end when the store is closed.
final class NotificationListeners: Sendable {
    private struct Entries {
        var endings: [@Sendable () -> Void] = []
        var isClosed = false
    }

    private let entries = Mutex(Entries())

    func add(_ end: @escaping @Sendable () -> Void) {
        let isClosed = entries.withLock { entries in
            if !entries.isClosed { entries.endings.append(end) }
            return entries.isClosed
        }
        if isClosed { end() }
    }

    func close() {
        let endings = entries.withLock { entries in
            defer { entries.endings = [] }
            entries.isClosed = true
            return entries.endings
        }
        for end in endings { end() }
    }
}

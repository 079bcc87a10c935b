private import Dispatch
private import Synchronization

extension PostgresStore {
    /// Returns a stream that signals new connections of grants by any worker, and notifications that may have been
    /// missed.
    ///
    /// A pooler that uses a session for one transaction passes no notification on: then the stream is silent. A caller
    /// that must not miss a change has to check periodically as well.
    package func changes() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let listener = NotificationListener(to: connector, random: random, tell: { continuation.yield() })
        continuation.onTermination = { _ in listener.close() }
        listeners.add { continuation.finish() }
        listener.start()
        return stream
    }
}

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

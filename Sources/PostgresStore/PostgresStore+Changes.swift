private import Dispatch
private import Synchronization

extension PostgresStore {
    /// Tells that grants were connected, by whichever worker, or that word of it may have been missed.
    ///
    /// A pooler that lends a session for one transaction passes no word on: then the stream is silent, and whoever listens
    /// has to look by the clock, as everybody should who must not miss anything.
    package func changes() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let listener = Listener(to: connector, random: random, tell: { continuation.yield() })
        continuation.onTermination = { _ in listener.close() }
        listeners.add { continuation.finish() }
        listener.start()
        return stream
    }
}

/// What is to end when the store is closed.
final class ListenerRegister: Sendable {
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

extension PostgresStore {
    /// Returns a stream that signals new connections of grants by any worker, and notifications that may have been
    /// missed.
    ///
    /// A pooler that uses a session for one transaction passes no notification on: then the stream is silent. A caller
    /// that must not miss a change has to check periodically as well.
    package func changes() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let listener = NotificationListener(to: connector, random: random, onNotification: { continuation.yield() })
        continuation.onTermination = { _ in listener.close() }
        listeners.add { continuation.finish() }
        listener.start()
        return stream
    }
}

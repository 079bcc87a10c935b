import Base
private import Dispatch
private import Glibc
private import Synchronization

/// Keeps one connection that listens for notifications, and opens a new one when it is lost.
final class NotificationListener: Sendable {
    private struct State {
        var connection: PostgresConnection?
        var source: (any DispatchSourceRead)?
        var failures = 0
        var isClosed = false

        mutating func end() {
            source?.cancel()
            source = nil
            connection = nil
        }
    }

    private static let timeout: Duration = .seconds(10)

    private let connector: Connector
    private let random: any RandomSource
    private let onNotification: @Sendable () -> Void
    private let queue = DispatchQueue(label: "postgres.listener")
    /// Only the queue takes the lock, so the lock never waits.
    private let state = Mutex(State())

    init(to connector: Connector, random: any RandomSource, onNotification: @escaping @Sendable () -> Void) {
        self.connector = connector
        self.random = random
        self.onNotification = onNotification
    }

    func start() { queue.async { self.connect() } }

    func close() {
        queue.async {
            self.state.withLock { state in
                state.isClosed = true
                state.end()
            }
        }
    }

    private func connect() {
        let pause: Duration? = state.withLock { state in
            guard !state.isClosed else { return nil }
            do throws(StoreError) {
                let deadline = CallDeadline(in: Self.timeout)
                let connection = try connector.open(until: deadline)
                // A pooler would lend the listening session to others.
                guard !connection.isPooled else { return nil }
                let listen = SQLQuery("listen", sql: "LISTEN \(connection.database.schema.channel)")
                _ = try connection.run(StatementBatch(listen), until: deadline)
                state.connection = connection
                state.failures = 0
                state.source = try watch(connection.socket)
                return nil
            } catch {
                // The scan finds all changes from that time, and callers of the database report that it cannot be
                // reached.
                state.failures += 1
                return Connector.pause(afterFailures: state.failures, random: random)
            }
        }
        if let pause {
            queue.asyncAfter(deadline: .now() + .milliseconds(Int(pause.wholeMilliseconds))) { self.connect() }
        } else {
            // A notification might have been missed while the connection was lost.
            onNotification()
        }
    }

    /// Watches a copy of the socket: a watched socket must not be closed before the watch has ended, and libpq closes
    /// its own.
    private func watch(_ socket: Int32) throws(StoreError) -> any DispatchSourceRead {
        let copy = fcntl(socket, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else {
            throw StoreError(
                .ioFailure,
                "There is no file descriptor left for the database's notifications. Raise the limit of open files."
            )
        }
        let source = DispatchSource.makeReadSource(fileDescriptor: copy, queue: queue)
        source.setEventHandler { [weak self] in self?.receive() }
        source.setCancelHandler { Glibc.close(copy) }
        source.activate()
        return source
    }

    private func receive() {
        let isLost = state.withLock { state in
            guard let connection = state.connection else { return false }
            guard let count = connection.takeNotifications() else {
                state.end()
                return !state.isClosed
            }
            if count > 0 { onNotification() }
            return false
        }
        if isLost { connect() }
    }
}

extension PostgresStore {
    /// Returns a stream that signals new connections of grants by any worker, and notifications that might have been
    /// missed.
    ///
    /// A pooler that uses a session for one transaction passes no notification on: then the stream is silent. A caller
    /// that must not miss a change has to check periodically as well.
    package func changes() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let listener = NotificationListener(to: connector, random: random, onNotification: { continuation.yield() })
        continuation.onTermination = { _ in listener.close() }
        let isClosed = listeners.withLock { $0?.append({ continuation.finish() }) == nil }
        if isClosed { continuation.finish() }
        listener.start()
        return stream
    }
}

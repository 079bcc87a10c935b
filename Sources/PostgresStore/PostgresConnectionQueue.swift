import Clocks
private import Dispatch
import Store
private import Synchronization

/// Lends one connection to one caller at a time, on a serial queue of its own, since waiting for the server blocks;
/// connects on demand.
final class PostgresConnectionQueue: Sendable {
    private struct Line {
        var connection: PostgresConnection?
        /// The number of failed attempts to connect in a row.
        var failures = 0
    }

    private let queue: DispatchQueue
    private let connector: Connector
    private let patience: Duration
    private let random: any RandomSource
    /// Only the queue takes the lock, so the lock never waits.
    private let line = Mutex(Line())
    private let isClosed = Atomic(false)

    init(to connector: Connector, label: String, patience: Duration, random: any RandomSource) {
        queue = DispatchQueue(label: label)
        self.connector = connector
        self.patience = patience
        self.random = random
    }

    /// Runs `body` on the queue and returns its result, within the given patience or the queue's own.
    ///
    /// Statements that may be repeated are, on a new connection if the old one is lost.
    func run<StatementResult: Sendable>(
        patience: Duration? = nil,
        _ body: @escaping @Sendable (PostgresConnection, CallDeadline) throws(StatementFailure) -> StatementResult
    ) async throws(StoreError) -> StatementResult {
        let deadline = CallDeadline(in: patience ?? self.patience)
        let outcome: Result<StatementResult, StoreError> = await withCheckedContinuation { continuation in
            queue.async {
                continuation.resume(returning: self.perform(body, until: deadline))
            }
        }
        return try outcome.get()
    }

    func close() async {
        isClosed.store(true, ordering: .releasing)
        await withCheckedContinuation { continuation in
            queue.async {
                self.line.withLock { $0.connection = nil }
                continuation.resume()
            }
        }
    }

    private func perform<StatementResult: Sendable>(
        _ body: @Sendable (PostgresConnection, CallDeadline) throws(StatementFailure) -> StatementResult,
        until deadline: CallDeadline
    ) -> Result<StatementResult, StoreError> {
        // The caller has given up by its own clock, or will; the statements would only cost the connection.
        guard !deadline.isOver else {
            return .failure(
                StoreError(
                    .busy,
                    "\(connector.description.capitalizedFirst) was busy with other calls for \(deadline.patience.inWords). Try again."
                )
            )
        }
        return line.withLock { line in
            while true {
                do throws(StatementFailure) {
                    let connection = try self.connection(of: &line, until: deadline)
                    return .success(try body(connection, deadline))
                } catch {
                    if error.losesConnection { line.connection = nil }
                    // The server is a standby that was a primary: the next connection may find the new primary.
                    if error.state == "25006" { line.connection = nil }
                    guard error.mayRunAgain, !deadline.isOver, !isClosed.load(ordering: .acquiring) else {
                        return .failure(error.error)
                    }
                }
            }
        }
    }

    private func connection(of line: inout Line, until deadline: CallDeadline) throws(StatementFailure)
        -> PostgresConnection
    {
        if let connection = line.connection, connection.seemsAlive(), isCurrent(connection) { return connection }
        line.connection = nil
        while true {
            guard !isClosed.load(ordering: .acquiring) else {
                throw StatementFailure(.closed, "The store is closed.")
            }
            do throws(StatementFailure) {
                let connection = try connector.open(until: deadline)
                line.connection = connection
                line.failures = 0
                return connection
            } catch {
                line.failures += 1
                let pause = ReconnectPause.after(failures: line.failures, random: random)
                // A server would refuse the same again. The next attempt also needs time: one that is cut short would
                // hide the reason behind "no answer in time".
                guard [.unreachable, .readOnly].contains(error.error.code), pause * 2 < deadline.remaining else {
                    throw StatementFailure(error.error)
                }
                SystemTime.blockThread(for: pause)
            }
        }
    }

    /// Returns `false` once a newer server is known than the one of this connection.
    private func isCurrent(_ connection: PostgresConnection) -> Bool {
        connector.lineage?.admits(connection.identity) ?? true
    }
}

private import Dispatch
private import Synchronization

/// Lends one connection to one caller at a time, on a serial queue of its own.
///
/// SQLite blocks, so it must not run on the threads that async functions share.
final class SQLiteConnectionQueue: Sendable {
    private let queue: DispatchQueue
    /// The connection, until it is closed. Only the queue takes the lock, so the lock never waits.
    private let connection: Mutex<SQLiteConnection?>
    private let leaseTime: @Sendable () -> LeaseTime

    init(_ connection: sending SQLiteConnection, label: String, leaseTime: @escaping @Sendable () -> LeaseTime) {
        self.leaseTime = leaseTime
        queue = DispatchQueue(label: label)
        self.connection = Mutex(connection)
    }

    /// Runs `body` on the queue and returns its result.
    func run<Value: Sendable>(
        _ body: @escaping @Sendable (SQLiteConnection) throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        let outcome: Result<Value, StoreError> = await withCheckedContinuation { continuation in
            queue.async {
                continuation.resume(returning: self.perform(body))
            }
        }
        return try outcome.get()
    }

    /// Runs `last` with the connection, if it is open, and closes it.
    func close(_ last: @escaping @Sendable (SQLiteConnection) -> Void = { _ in }) async {
        await withCheckedContinuation { continuation in
            queue.async {
                self.connection.withLock { connection in
                    if let open = connection { last(open) }
                    connection = nil
                }
                continuation.resume()
            }
        }
    }

    private func perform<Value: Sendable>(
        _ body: @Sendable (SQLiteConnection) throws(StoreError) -> Value
    ) -> Result<Value, StoreError> {
        connection.withLock { connection in
            guard let connection else { return .failure(StoreError(.closed, "The database is closed.")) }
            do throws(StoreError) {
                try connection.followLeases(at: leaseTime)
                let value = try body(connection)
                if connection.needsWipe || connection.hasLongLog { queue.async(execute: cleanUpLogs) }
                return .success(value)
            } catch {
                if error.code == .diskFull { queue.async(execute: makeRoom) }
                return .failure(connection.healLeases(after: error, at: leaseTime))
            }
        }
    }

    /// Copies the logs after a commit that found the disk full, so that the next one can succeed.
    private func makeRoom() {
        connection.withLock { connection in
            do {
                try connection?.makeRoom()
            } catch {
                // Only free space helps. The caller of the commit has the error.
                return
            }
        }
    }

    /// Removes deleted tokens from the log, and copies a long log into the database file. The commit is durable and its
    /// caller has continued: if a reader is in the way, or the disk fails, the next commit tries again.
    private func cleanUpLogs() {
        connection.withLock { connection in
            guard let connection else { return }
            do {
                if connection.needsWipe { connection.needsWipe = try !connection.restartLog(cuts: true) }
                if connection.hasLongLog { try connection.shortenLogs() }
            } catch {
                return
            }
        }
    }
}

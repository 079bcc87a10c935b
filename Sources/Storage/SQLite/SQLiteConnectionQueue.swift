private import Dispatch
private import Synchronization

/// Lends one connection to one caller at a time, on a serial queue of its own.
///
/// SQLite blocks, so it must not run on the threads that async functions share.
final class SQLiteConnectionQueue: Sendable {
    private let queue: DispatchQueue
    /// The connection, until it is closed.
    ///
    /// Only the queue takes the lock, so the lock never waits.
    private let connection: Mutex<SQLiteConnection?>
    private let leaseTime: @Sendable () -> LeaseTime

    init(
        _ connection: sending SQLiteConnection,
        label: String,
        leaseTime: @escaping @Sendable () -> LeaseTime
    ) {
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
                return .failure(connection.healLeases(after: error, at: leaseTime))
            }
        }
    }

    /// Removes deleted tokens from the log, and copies a long log into the database file.
    ///
    /// The commit is durable and its caller has continued: if a reader is in the way, or the disk fails, the next
    /// commit tries again.
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

extension SQLiteConnection {
    private static let beginImmediate = SQLQuery("begin", "BEGIN IMMEDIATE")
    private static let beginDeferred = SQLQuery("begin reading", "BEGIN")
    private static let commitQuery = SQLQuery("commit", "COMMIT")
    private static let rollbackQuery = SQLQuery("roll back", "ROLLBACK")

    /// Starts a transaction that excludes every other writer.
    func begin() throws(StoreError) {
        if let fullDisk { throw fullDisk }
        try run(Self.beginImmediate)
    }

    /// Makes the writes durable; if that fails, nothing is written.
    ///
    /// The check of the files comes last, and before the commit, while no other process can checkpoint.
    func commit() throws(StoreError) {
        do {
            try requireSameFiles()
            try run(Self.commitQuery)
        } catch {
            rollBack()
            throw error
        }
    }

    /// Takes back the writes, unless SQLite has done so itself (https://sqlite.org/lang_transaction.html).
    func rollBack() {
        guard isInTransaction else { return }
        do {
            try run(Self.rollbackQuery)
        } catch {
            // Nothing is lost: the original error is on its way to the caller, and a transaction that is still open
            // makes the next `begin` fail with an error of its own.
            return
        }
    }

    /// Runs `body` in one transaction that excludes every other writer.
    ///
    /// It throws ``StoreError/Code/moved`` if the database was moved, unless `evenIfMoved` is set.
    func write<Value>(
        evenIfMoved: Bool = false,
        _ body: () throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        try begin()
        let value: Value
        do {
            try readState(evenIfMoved: evenIfMoved)
            value = try body()
        } catch {
            rollBack()
            throw error
        }
        try commit()
        return value
    }

    /// Runs `body` in one transaction on the file of leases alone.
    func writeLeases(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        try run(Self.beginDeferred)
        do {
            try body()
            try run(Self.commitQuery)
        } catch {
            rollBack()
            throw error
        }
    }

    /// Runs `body` on one unchanging snapshot of the database.
    func read<Value>(_ body: () throws(StoreError) -> Value) throws(StoreError) -> Value {
        try run(Self.beginDeferred)
        defer { rollBack() }
        return try body()
    }
}

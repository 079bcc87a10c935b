private import Base
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

/// Reads single grants on the caller's thread, over a few connections of its own.
///
/// It serves threads that may wait for the disk but not for a queue, such as those of a listener: the queue of
/// ``SQLiteStore`` costs more than the read. It does not wait for other callers: while all its connections are in use,
/// or another process holds the file, it returns `nil`, and the caller reads from the store instead.
package final class SynchronousGrantReader: Sendable {
    private final class Reader: Sendable {
        /// The connection, until it is closed.
        let connection: Mutex<SQLiteConnection?>

        init(_ connection: sending SQLiteConnection) {
            self.connection = Mutex(connection)
        }
    }

    private let readers: [Reader]

    /// Opens a database that a ``SQLiteStore`` has created; it blocks, for up to `timeout` while another process holds
    /// the file.
    ///
    /// `bootID` is the boot that leases belong to; `nil` asks the kernel. As many callers as there are `connections`
    /// are served at once.
    package init(
        path: String,
        bootID: String? = nil,
        connections: Int,
        timeout: Duration = .seconds(10)
    ) throws(StoreError) {
        let bootID = if let bootID { bootID } else { try BootID.require() }
        let leases = LeaseFile(of: path, bootID: bootID)
        var readers: [Reader] = []
        for _ in 0..<connections {
            let connection = try SQLiteConnection.reader(path: path, leases: leases, timeout: timeout)
            connection.setBusyTimeout(.zero)
            readers.append(Reader(connection))
        }
        self.readers = readers
    }

    /// Returns the stored grant, or `nil` if there is none, or if it cannot be read without waiting.
    package func grant(ofUser userID: String) throws(StoreError) -> Grant? {
        for reader in readers {
            let outcome: Result<Grant?, StoreError>? = reader.connection.withLockIfAvailable { connection in
                guard let connection else { return .success(nil) }
                do throws(StoreError) {
                    try connection.followLeases()
                    return .success(
                        try connection.first(
                            SQLiteGrantRow.queries.ofUser,
                            bind: { $0.bind(userID) },
                            read: Grant.read
                        )
                    )
                } catch {
                    return .failure(error)
                }
            }
            if let outcome { return try outcome.get() }
        }
        return nil
    }

    /// Closes the connections, so that the store, which closes after it, is the last and can clean up its files.
    package func close() {
        for reader in readers { reader.connection.withLock { $0 = nil } }
    }
}

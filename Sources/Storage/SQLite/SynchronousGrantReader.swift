private import Base
private import Synchronization

/// Reads single grants on the caller's thread, over a few connections of its own.
///
/// It serves threads that can wait for the disk but not for a queue, such as those of a listener: the queue of
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

    /// Opens a database that a ``SQLiteStore`` has created.
    ///
    /// It blocks, for up to `timeout` while another process holds the file.
    ///
    /// `bootID` is the boot that leases belong to, where `nil` asks the kernel. As many callers as there are
    /// `connections` are served at once.
    package init(
        path: String,
        bootID: String? = nil,
        connections: Int,
        timeout: Duration = .seconds(10)
    ) throws(StoreError) {
        let bootID = if let bootID { bootID } else { try SystemTime.requireBootID() }
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
    package func grant(ofUser userID: String, connection: ConnectionID) throws(StoreError) -> Grant? {
        for reader in readers {
            let outcome: Result<Grant?, StoreError>? = reader.connection.withLockIfAvailable { database in
                guard let database else { return .success(nil) }
                do throws(StoreError) {
                    try database.followLeases()
                    return .success(
                        try database.first(
                            SQLiteGrantRow.queries.ofConnection,
                            bind: {
                                $0.bind(userID)
                                $0.bind(connection.description)
                            },
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

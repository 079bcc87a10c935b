private import Clocks
package import Store
private import Synchronization

/// Reads single grants on the thread of whoever asks, over a few connections of its own.
///
/// For threads that may wait for the disk, as a listener's own, and that cannot wait for a queue: what ``SQLiteStore`` does
/// in its queue costs more than the read itself. It waits for nobody else: while other callers use all of its connections,
/// or another process holds the file, it has no answer and the store is to be asked.
package final class PromptGrantReader: Sendable {
    private final class Seat: Sendable {
        /// The connection, until it is closed.
        let connection: Mutex<Connection?>

        init(_ connection: sending Connection) {
            self.connection = Mutex(connection)
        }
    }

    private let seats: [Seat]

    /// Opens a database that a ``SQLiteStore`` has made; it blocks, for up to `patience` while another process holds the file.
    ///
    /// `bootID` names the boot that leases belong to; `nil` asks the kernel. So many callers as there are `connections` are served at once.
    package init(
        path: String,
        bootID: String? = nil,
        connections: Int,
        patience: Duration = .seconds(10)
    ) throws(StoreError) {
        let bootID = if let bootID { bootID } else { try BootID.require() }
        let leases = LeaseFile(of: path, bootID: bootID)
        var seats: [Seat] = []
        for _ in 0..<connections {
            let connection = try Connection.reader(path: path, leases: leases, patience: patience)
            connection.setPatience(.zero)
            seats.append(Seat(connection))
        }
        self.seats = seats
    }

    /// The grant as it is stored now; `nil` when there is none, and when it cannot be read at once.
    package func grant(ofUser userID: String) throws(StoreError) -> Grant? {
        for seat in seats {
            let outcome: Result<Grant?, StoreError>? = seat.connection.withLockIfAvailable { connection in
                guard let connection else { return .success(nil) }
                do throws(StoreError) {
                    return .success(
                        try connection.first(.grantOfUser, bind: { $0.bind(userID) }, read: GrantRow.read)
                    )
                } catch {
                    return .failure(error)
                }
            }
            if let outcome { return try outcome.get() }
        }
        return nil
    }

    /// Closes the connections, so that the store, which closes after it, is the last and puts its files in order.
    package func close() {
        for seat in seats { seat.connection.withLock { $0 = nil } }
    }
}

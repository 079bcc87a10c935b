package import Base

/// Grants, users and sessions in one SQLite file, which any number of processes of one machine may have open at once.
///
/// Leases are in a second file next to it (``LeaseFile``).
///
/// One connection writes, in transactions that exclude every other writer; one reads single grants and one runs scans,
/// so that a long scan does not delay a caller that waits for a token. Each has a queue of its own, since SQLite
/// blocks. The file is in WAL mode: a reader sees every commit that completed before it began, and does not block
/// writers.
///
/// To restore a backup: stop every process that has the database open, replace the file with the backup, remove the
/// files of the same name that end in `-wal` and `-shm`, start again. The file of leases may stay or go.
package final class SQLiteStore: SQLStore {
    package let path: String
    let timeSource: any TimeSource
    let random: any RandomSource
    package let bootID: String
    let timeout: Duration
    let leases: LeaseFile
    let keepsNotices: Bool
    let writer: SQLiteConnectionQueue
    let reader: SQLiteConnectionQueue
    let scanner: SQLiteConnectionQueue

    /// Opens the database, creating it (mode 0600) if necessary and bringing its schema up to date.
    ///
    /// It blocks, for up to `timeout` while another process holds the file. `bootID` is the boot that leases belong
    /// to; `nil` asks the kernel. `timeout` is the time that a write waits for another process's before it fails with
    /// ``StoreError/Code/busy``. `keepsNotices` is `true` if events that concern the backend go to the outbox.
    /// `onUpgrade` is called before each step that brings an older database up to date, which may take minutes; while a
    /// worker uses the older database, the call fails with ``StoreError/Code/inUse``. A process that `onlyReads` can
    /// open the database on a full disk too; there, every write fails with ``StoreError/Code/diskFull``.
    package init(
        path: String,
        timeSource: any TimeSource,
        random: any RandomSource = SystemRandom(),
        bootID: String? = nil,
        timeout: Duration = .seconds(10),
        keepsNotices: Bool = false,
        onlyReads: Bool = false,
        onUpgrade: @Sendable (_ from: Int, _ to: Int) -> Void = { _, _ in }
    ) throws(StoreError) {
        let bootID = if let bootID { bootID } else { try BootID.require() }
        self.path = path
        self.timeSource = timeSource
        self.random = random
        self.bootID = bootID
        self.timeout = timeout
        self.keepsNotices = keepsNotices
        let leases = LeaseFile(of: path, bootID: bootID)
        self.leases = leases
        let leaseTime: @Sendable () -> LeaseTime = { LeaseTime(epoch: bootID, instant: timeSource.sinceBoot) }
        do {
            // The writer first: it creates the files and the schema.
            writer = SQLiteConnectionQueue(
                try SQLiteConnection.writer(
                    path: path,
                    leases: leases,
                    timeout: timeout,
                    at: leaseTime(),
                    onlyReads: onlyReads,
                    onUpgrade: onUpgrade
                ),
                label: "sqlite.writer",
                leaseTime: leaseTime
            )
            reader = SQLiteConnectionQueue(
                try SQLiteConnection.reader(path: path, leases: leases, timeout: timeout),
                label: "sqlite.reader",
                leaseTime: leaseTime
            )
            scanner = SQLiteConnectionQueue(
                try SQLiteConnection.reader(path: path, leases: leases, timeout: timeout),
                label: "sqlite.scanner",
                leaseTime: leaseTime
            )
        } catch {
            throw Self.confirmed(error, bootID: bootID)
        }
    }

    package func leaseTime() async throws -> LeaseTime {
        leaseTimeNow
    }

    var leaseTimeNow: LeaseTime { LeaseTime(epoch: bootID, instant: timeSource.sinceBoot) }

    package func transact<Result: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Result
    ) async throws -> Result {
        let outcome: Swift.Result<Result, any Error> = try await writer.run { [self] connection throws(StoreError) in
            try connection.begin()
            do throws(StoreError) {
                try connection.readState()
            } catch {
                connection.rollBack()
                throw error
            }
            let transaction = SQLiteTransaction(of: self, on: connection)
            let outcome = Swift.Result { try body(transaction) }
            guard case .success = outcome else {
                connection.rollBack()
                return outcome
            }
            do throws(StoreError) {
                try transaction.finish()
            } catch {
                connection.rollBack()
                throw error
            }
            try connection.commit()
            connection.apply(transaction.leaseChanges)
            return outcome
        }
        return try outcome.get()
    }

    /// Removes deleted tokens from the log, copies the log into the file and closes all connections; a second call does
    /// nothing.
    package func close() async {
        await reader.close()
        await scanner.close()
        await writer.close { connection in connection.finishLogs() }
    }
}

extension SQLiteConnection {
    /// Copies the log before closing, and lets SQLite delete it if no other process has the database open.
    ///
    /// Otherwise the next process that opens the file continues with the log, so a failure here has no effect. After a
    /// failure the log stays: the database file may not be the one that it belongs to.
    fileprivate func finishLogs() {
        do {
            if needsWipe { needsWipe = try !restartLog(cuts: true) }
            guard try checkpoint() else { return }
        } catch {
            return
        }
        // SQLite copies and deletes the logs only with a lock that excludes every other connection. This one is the
        // last of the process.
        checkpointer = nil
        keepLogOnClose(false)
    }
}

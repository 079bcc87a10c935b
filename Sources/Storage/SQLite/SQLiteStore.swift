package import Base

/// Grants, users and sessions in one SQLite file, which any number of processes of one machine can have open at once.
///
/// Leases are in a second file next to it (``LeaseFile``).
///
///     let store = try SQLiteStore(path: "/var/lib/refresh-worker/grants.db", timeSource: SystemTime())
///
/// One connection writes, in transactions that exclude every other writer. Another reads single grants and a third runs
/// scans, so that a long scan does not delay a caller that waits for a token. Each has a queue of its own, since SQLite
/// blocks. The file is in WAL mode: a reader sees every commit that completed before it began, and does not block
/// writers.
///
/// To restore a backup: stop every process that has the database open, replace the file with the backup, remove the
/// files of the same name that end in `-wal` and `-shm`, start again. The file of leases can stay or go.
package final class SQLiteStore: SQLStore {
    package let path: String
    let timeSource: any TimeSource
    let random: any RandomSource
    package let bootID: String
    let timeout: Duration
    let leases: LeaseFile
    private let incidents: IncidentLog
    let keepsNotices: Bool
    let writer: SQLiteConnectionQueue
    let reader: SQLiteConnectionQueue
    let scanner: SQLiteConnectionQueue

    /// Opens the database, creating it (mode 0600) if necessary and bringing its schema up to date.
    ///
    /// It blocks, for up to `timeout` while another process holds the file. `bootID` is the boot that leases belong to,
    /// where `nil` asks the kernel. `timeout` is the time that a write waits for another process's before it fails with
    /// ``StoreError/Code/busy``. `keepsNotices` is `true` if events that concern the backend go to the outbox.
    /// `onUpgrade` is called before each step that brings an older database up to date, which can take minutes. While a
    /// worker uses the older database, the call fails with ``StoreError/Code/inUse``. A process that `onlyReads` can
    /// open the database on a full disk too. There, every write fails with ``StoreError/Code/diskFull``.
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
        let bootID = if let bootID { bootID } else { try SystemTime.requireBootID() }
        self.path = path
        self.timeSource = timeSource
        self.random = random
        self.bootID = bootID
        self.timeout = timeout
        self.keepsNotices = keepsNotices
        let incidents = IncidentLog()
        self.incidents = incidents
        let leases = LeaseFile(of: path, bootID: bootID, incidents: incidents)
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
            let queue = { (name: String) throws(StoreError) in
                let connection = try SQLiteConnection.reader(path: path, leases: leases, timeout: timeout)
                return SQLiteConnectionQueue(connection, label: "sqlite.\(name)", leaseTime: leaseTime)
            }
            reader = try queue("reader")
            scanner = try queue("scanner")
        } catch {
            throw Self.confirmed(error, bootID: bootID)
        }
    }

    package func pendingIncidents() -> [StoreIncident] { incidents.pending }

    package func takeIncidents() -> [StoreIncident] { incidents.take() }

    package func leaseTime() async throws -> LeaseTime { leaseTimeNow }

    var leaseTimeNow: LeaseTime { LeaseTime(epoch: bootID, instant: timeSource.sinceBoot) }

    package func transact<Result: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Result
    ) async throws -> Result {
        // Read here: the body runs on the queue of the connection, outside the caller's task.
        let trace = TraceContext.current
        let outcome: Swift.Result<Result, any Error> = try await writer.run { [self] connection throws(StoreError) in
            try connection.begin()
            let transaction = SQLiteTransaction(of: self, on: connection, trace: trace)
            let outcome: Swift.Result<Result, any Error>
            do throws(StoreError) {
                try connection.readState()
                outcome = Swift.Result { try body(transaction) }
                if case .success = outcome { try transaction.finish() }
            } catch {
                connection.rollBack()
                throw error
            }
            guard case .success = outcome else {
                connection.rollBack()
                // Thrown here, because the queue heals what it can.
                if case .failure(let error as StoreError) = outcome { throw error }
                return outcome
            }
            try connection.commit()
            connection.apply(transaction.leaseChanges)
            return outcome
        }
        return try outcome.get()
    }

    /// Removes deleted tokens from the log, copies the log into the file and closes all connections. A second call does
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
    /// failure the log stays: the database file might not be the one that it belongs to.
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

extension SQLiteConnection {
    private static let beginImmediate = SQLQuery("begin", sql: "BEGIN IMMEDIATE")
    private static let beginDeferred = SQLQuery("begin reading", sql: "BEGIN")
    private static let commitQuery = SQLQuery("commit", sql: "COMMIT")
    private static let rollbackQuery = SQLQuery("roll back", sql: "ROLLBACK")

    /// Starts a transaction that excludes every other writer.
    func begin() throws(StoreError) {
        if let fullDisk { throw fullDisk }
        try run(Self.beginImmediate)
    }

    /// Makes the writes durable, or writes nothing if that fails. The check of the files comes last, and before the
    /// commit, while no other process can checkpoint.
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

    /// Runs `body` in one transaction that excludes every other writer. It throws ``StoreError/Code/moved`` if the
    /// database was moved, unless `evenIfMoved` is set.
    func write<Value>(evenIfMoved: Bool = false, _ body: () throws(StoreError) -> Value) throws(StoreError) -> Value {
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

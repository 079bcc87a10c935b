private import Clocks
import Store

extension SQLiteConnection {
    private static let useLog = Query("journal mode", "PRAGMA journal_mode = WAL")

    /// The settings of every connection.
    ///
    /// `synchronous = FULL` makes each commit durable before the call returns; leases end with the boot and need no
    /// sync. `secure_delete` overwrites deleted data. `trusted_schema = OFF` and `cell_size_check` protect against a
    /// file that was tampered with (https://sqlite.org/security.html). The log is cut back after a backup has let it
    /// grow.
    private static let settings = Query(
        "settings",
        """
        PRAGMA synchronous = FULL;
        PRAGMA foreign_keys = ON;
        PRAGMA secure_delete = ON;
        PRAGMA trusted_schema = OFF;
        PRAGMA cell_size_check = ON;
        PRAGMA mmap_size = 0;
        PRAGMA temp_store = MEMORY;
        PRAGMA journal_size_limit = \(logSizeLimit);
        PRAGMA \(LeaseFile.schema).synchronous = OFF;
        PRAGMA \(LeaseFile.schema).journal_size_limit = \(logSizeLimit);
        """
    )
    private static let useLeaseLog = Query("journal mode of leases", "PRAGMA \(LeaseFile.schema).journal_mode = WAL")
    /// Seven megabytes for each connection.
    ///
    /// Grants that are due together are close together, so a larger cache holds pages that are not needed again soon;
    /// the kernel has them as well. With 64 MB, neither a refresh nor a new grant took less processor time.
    private static let cacheSetting = "PRAGMA cache_size = -7168"
    private static let writerSettings = Query("settings", cacheSetting)
    private static let readerSettings = Query("settings", "\(cacheSetting); PRAGMA query_only = ON")

    /// Opens the one connection that writes: it creates the file if necessary and brings its schema up to date.
    ///
    /// On a full disk a process that `onlyReads` gets a connection that refuses every commit.
    static func writer(
        path: String,
        leases: LeaseFile,
        timeout: Duration,
        at time: LeaseTime,
        onlyReads: Bool,
        onUpgrade: @Sendable (SchemaUpgrade) -> Void
    ) throws(StoreError) -> SQLiteConnection {
        let schema = Schema()
        try DatabaseFile.prepare(path)
        let connection = try SQLiteConnection(path: path, timeout: timeout)
        guard !connection.isReadOnly else {
            throw StoreError(
                .readOnly,
                "The database \(path) can be read but not written. Let the worker's user write to it and to its folder."
            )
        }
        try connection.retryingWhileBusy(for: timeout) { () throws(StoreError) in
            // Checked before anything is written: the file may be another program's.
            _ = try schema.version(of: connection)
            let mode = try connection.first(useLog) { (row: inout Row) throws(StoreError) in row.text() }
            guard mode == "wal" else {
                throw StoreError(
                    .cannotOpen,
                    "The database \(path) is on a file system without shared memory (\(mode ?? "none")). Use a local "
                        + "disk."
                )
            }
        }
        try leases.prepare()
        try connection.attach(leases)
        try connection.retryingWhileBusy(for: timeout) { () throws(StoreError) in
            _ = try connection.first(useLeaseLog) { (row: inout Row) throws(StoreError) in row.text() }
        }
        try connection.execute(settings)
        try connection.execute(writerSettings)
        try connection.write { () throws(StoreError) in try connection.execute(.makeLeases) }
        let checkpointer = try SQLiteConnection(path: path, timeout: timeout)
        try checkpointer.attach(leases)
        try checkpointer.execute(settings)
        connection.checkpointer = checkpointer
        var fullDisk: StoreError?
        do {
            try connection.prepareCommits(at: time)
        } catch {
            guard onlyReads, error.code == .diskFull else { throw error }
            fullDisk = error
        }
        try schema.migrate(connection, at: time, onUpgrade: onUpgrade)
        try connection.monitorFiles(leases: leases)
        connection.fullDisk = fullDisk
        return connection
    }

    /// Does what must be done before the first commit, and needs disk space itself.
    private func prepareCommits(at time: LeaseTime) throws(StoreError) {
        try write { () throws(StoreError) in
            try run(.removeEndedLeases) { statement in
                statement.bind(time.epoch)
                statement.bind(time.instant.milliseconds)
            }
        }
        try secureLog()
    }

    static func reader(path: String, leases: LeaseFile, timeout: Duration) throws(StoreError) -> SQLiteConnection {
        let connection = try SQLiteConnection(path: path, timeout: timeout)
        try connection.attach(leases)
        try connection.execute(settings)
        try connection.execute(readerSettings)
        return connection
    }

    /// Retries a call that SQLite fails at once, without waiting, if two connections switch a new file to a log at the
    /// same time (https://sqlite.org/c3ref/busy_handler.html).
    private func retryingWhileBusy(for timeout: Duration, _ body: () throws(StoreError) -> Void) throws(StoreError) {
        let pause: Duration = .milliseconds(10)
        var attemptsLeft = Int(timeout / pause)
        while true {
            do {
                return try body()
            } catch {
                guard error.code == .busy, attemptsLeft > 0 else { throw error }
                attemptsLeft -= 1
                SystemTime.blockThread(for: pause)
            }
        }
    }
}

private import Base

extension SQLiteConnection {
    private static let useLog = SQLQuery("journal mode", sql: "PRAGMA journal_mode = WAL")

    /// The settings of every connection.
    ///
    /// `synchronous = FULL` makes each commit durable before the call returns. Leases end with the boot and need no
    /// sync. `secure_delete` overwrites deleted data. `trusted_schema = OFF` and `cell_size_check` protect against a
    /// file that was tampered with (https://sqlite.org/security.html). The log is cut back after a backup has let it
    /// grow.
    private static let databaseSettings = SQLQuery(
        "settings",
        sql: """
            PRAGMA synchronous = FULL;
            PRAGMA foreign_keys = ON;
            PRAGMA secure_delete = ON;
            PRAGMA trusted_schema = OFF;
            PRAGMA cell_size_check = ON;
            PRAGMA mmap_size = 0;
            PRAGMA temp_store = MEMORY;
            PRAGMA journal_size_limit = \(logSizeLimit);
            """
    )
    private static let leaseSettings = SQLQuery(
        "settings of leases",
        sql: """
            PRAGMA \(LeaseFile.schema).synchronous = OFF;
            PRAGMA \(LeaseFile.schema).journal_size_limit = \(logSizeLimit);
            """
    )
    private static let useLeaseLog = SQLQuery(
        "journal mode of leases",
        sql: "PRAGMA \(LeaseFile.schema).journal_mode = WAL"
    )
    /// Seven megabytes for each connection.
    ///
    /// Grants that are due together are close together, so a larger cache holds pages that are not needed again soon.
    /// The kernel has them as well. With 64 MB, neither a refresh nor a new grant took less processor time.
    private static let cacheSetting = "PRAGMA cache_size = -7168"
    private static let writerSettings = SQLQuery("settings", sql: cacheSetting)
    private static let readerSettings = SQLQuery("settings", sql: "\(cacheSetting); PRAGMA query_only = ON")

    /// Opens the one connection that writes: it creates the file if necessary and brings its schema up to date. On a
    /// full disk a process that `onlyReads` gets a connection that refuses every commit.
    static func writer(
        path: String,
        leases: LeaseFile,
        timeout: Duration,
        at time: LeaseTime,
        onlyReads: Bool,
        onUpgrade: @Sendable (_ from: Int, _ to: Int) -> Void
    ) throws(StoreError) -> SQLiteConnection {
        let schema = SQLiteSchema()
        try DatabaseFile.prepare(path)
        let nameLock = try DatabaseNameLock(path)
        try DatabaseFile.refuseLinksAsRoot(beside: path)
        let connection = try SQLiteConnection(path: path, timeout: timeout)
        connection.nameLock = nameLock
        guard !connection.isReadOnly else {
            throw StoreError(
                .readOnly,
                "The database \(path) can be read but not written. Let the worker's user write to it and to its folder."
            )
        }
        try connection.retryingWhileBusy(for: timeout) { () throws(StoreError) in
            // Checked before anything is written: the file might be another program's.
            _ = try schema.version(of: connection)
            let mode = try connection.first(useLog) { $0.text() }
            guard mode == "wal" else {
                throw StoreError(
                    .cannotOpen,
                    "The database \(path) is on a file system without shared memory (\(mode ?? "none")). Use a local "
                        + "disk."
                )
            }
        }
        try leases.removeFormer()
        try connection.execute(databaseSettings)
        try connection.execute(writerSettings)
        connection.checkpointer = try SQLiteConnection(path: path, timeout: timeout)
        try connection.checkpointer?.execute(databaseSettings)
        do {
            try connection.openLeases(leases, at: time)
        } catch {
            guard error.code == .corrupt, SQLiteStore.isDamaged(leases.path) else { throw error }
            try connection.openLeases(leases, replacing: try leases.identity.file, at: time)
        }
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

    /// Does what must be done before the first commit, and needs disk space itself. An earlier process can have filled
    /// the disk with the log of leases. Copied, that log is used again from its beginning.
    private func prepareCommits(at time: LeaseTime) throws(StoreError) {
        do {
            return try cleanLogs(at: time)
        } catch {
            guard error.code == .diskFull else { throw error }
        }
        try copyLeaseLog()
        try cleanLogs(at: time)
    }

    private func cleanLogs(at time: LeaseTime) throws(StoreError) {
        try write { () throws(StoreError) in
            let yesterday = (time.instant + .seconds(-86_400)).milliseconds
            try run(SQLStatement(.removeEndedLeases, .text(time.epoch), .integer(yesterday)))
        }
        try secureLog()
    }

    static func reader(path: String, leases: LeaseFile, timeout: Duration) throws(StoreError) -> SQLiteConnection {
        let connection = try SQLiteConnection(path: path, timeout: timeout)
        try connection.execute(databaseSettings)
        try connection.execute(readerSettings)
        try connection.attach(leases)
        try connection.execute(leaseSettings)
        return connection
    }

    // MARK: The file of leases

    /// Attaches the file of leases to the writer and its checkpointer.
    ///
    /// Makes a new one if there is none, if another file is in its place, or if it is the one that is to be replaced.
    /// The lock on the database excludes every other process that makes or uses one.
    private func openLeases(
        _ leases: LeaseFile,
        replacing former: FileIdentity? = nil,
        at time: LeaseTime
    ) throws(StoreError) {
        try checkpointer?.detachLeases()
        try detachLeases()
        try begin()
        do {
            let file = try leases.identity.file
            if try needsNewFile(leases, replacing: former) {
                let isReplaced = file != nil || former != nil
                try make(leases, replacing: former, pausing: isReplaced, at: time)
            }
        } catch {
            rollBack()
            throw error
        }
        rollBack()
        try DatabaseFile.refuseLinksAsRoot(beside: leases.path)
        try attach(leases)
        try retryingWhileBusy(for: timeout) { () throws(StoreError) in
            _ = try first(Self.useLeaseLog) { $0.text() }
        }
        try execute(Self.leaseSettings)
        try write { () throws(StoreError) in
            try execute(.makeLeases(in: LeaseFile.schema))
            guard let file = attached?.identity.file else { return }
            try run(.writeOrigin(in: LeaseFile.schema)) { $0.bind(file.inodeNumber) }
        }
        try checkpointer?.attach(leases)
        try checkpointer?.execute(Self.leaseSettings)
        let present = try leases.identity
        attached?.identity.index = present.index
        attached?.identity.log = present.log
    }

    /// `true` unless a usable file of leases has taken the place of `former`.
    private func needsNewFile(_ leases: LeaseFile, replacing former: FileIdentity?) throws(StoreError) -> Bool {
        let file = try leases.identity.file
        if file == nil || file == former { return true }
        return try !leases.isUsable(timeout: timeout)
    }

    private func make(
        _ leases: LeaseFile,
        replacing former: FileIdentity?,
        pausing: Bool,
        at time: LeaseTime
    ) throws(StoreError) {
        guard let facts = try DatabaseFile.identity(of: path) else {
            throw StoreError(.ioFailure, "The database \(path) was deleted just now. Try again.")
        }
        let note = DatabaseFileMonitor.Note(
            number: time.instant.milliseconds,
            isRunning: false,
            size: facts.size,
            modifiedAt: facts.modifiedAt,
            digest: comparableDigest(of: facts)
        )
        // A worker that uses the database can have claims in a file that was deleted.
        let workers = try SQLiteSchema().liveWorkers(of: self, at: time)
        let pauses = pausing || !workers.isEmpty
        let claimsFrom = pauses ? time.instant + Lease.span : nil
        try leases.make(note: note, claimsFrom: claimsFrom, replacing: former)
    }

    /// Uses the present file of leases if the attached one was deleted or replaced. It must not be called within a
    /// transaction. The writer needs `time`.
    func followLeases(at time: (() -> LeaseTime)? = nil) throws(StoreError) {
        guard let attached else { return }
        let leases = attached.leases
        let opened = attached.identity
        guard checkpointer != nil, let time else {
            if let file = try DatabaseFile.identity(of: leases.path), file != opened.file || !hasLeases {
                guard try leases.isUsable(timeout: timeout) else {
                    if hasLeases { return }
                    throw StoreError(damagedLeasesOf: path)
                }
                try detachLeases()
                try attach(leases)
                try execute(Self.leaseSettings)
            }
            return
        }
        let present = try leases.identity
        guard !hasLeases || !present.continues(opened) else { return }
        // The notes of the former file must not be lost before they have shown that the database is unchanged.
        if hasLeases, try needsNewFile(leases, replacing: opened.file) {
            do {
                try requireSameDatabase()
            } catch  where error.endsUse {
                throw error
            } catch {
                // The former file cannot be read any more.
            }
        }
        try replaceLeases(opened.file, at: time())
    }

    /// Makes a new file of leases if the attached one is damaged, or was overwritten by another one. Returns the error
    /// to report.
    func healLeases(after error: StoreError, at time: () -> LeaseTime) -> StoreError {
        guard checkpointer != nil, let leases = attached?.leases, let faulty = faultyLeases(leases, after: error)
        else { return error }
        do throws(StoreError) {
            try replaceLeases(faulty, at: time())
        } catch {
            return error
        }
        return StoreError(
            .ioFailure,
            "The file of leases \(leases.path) was damaged or overwritten, and was replaced by a new one. Try again."
        )
    }

    /// Returns the file of leases if it is the cause of an error.
    private func faultyLeases(_ leases: LeaseFile, after error: StoreError) -> FileIdentity? {
        do throws(StoreError) {
            // Read before the check, during which another process can replace the file.
            let file = try leases.identity.file
            switch error.code {
            case .corrupt: return SQLiteStore.isDamaged(leases.path) ? file : nil
            // A table or column is missing.
            case .fault: return try leases.isUsable(timeout: timeout) ? nil : file
            default: return nil
            }
        } catch {
            // The first error is the one to report.
            return nil
        }
    }

    private func replaceLeases(_ former: FileIdentity?, at time: LeaseTime) throws(StoreError) {
        guard let leases = attached?.leases else { return }
        let monitor = fileMonitor
        fileMonitor = nil
        defer { if fileMonitor == nil { fileMonitor = monitor } }
        try openLeases(leases, replacing: former, at: time)
        try monitorFiles(leases: leases, since: monitor)
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

private import Base

extension SQLiteStore {
    /// 2 MB with SQLite's usual pages: a step takes much less than a tenth of a second.
    private static let pagesPerStep: Int32 = 512
    private static let beginSnapshot = SQLQuery("begin snapshot", sql: "SELECT count(*) FROM meta")
    private static let beforeCopy = SQLQuery(
        "prepare backup",
        sql: "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY"
    )
    private static let removeWorkers = SQLQuery("remove workers from backup", sql: "DELETE FROM workers")
    private static let leaveLogMode = SQLQuery("make the backup one file", sql: "PRAGMA journal_mode = DELETE")
    private static let integrityCheck = SQLQuery("integrity check", sql: "PRAGMA integrity_check")

    /// Writes a copy of the database to a new file of mode 0600, while workers continue to read and write.
    ///
    /// The copy is a snapshot of one moment. It is written under a temporary name next to `destination`, checked, made
    /// durable, and only then gets its name. An existing file is never replaced. The log grows during the copy.
    ///
    /// Leases and workers are not part of it: no process uses the copy. To restore it: stop every process that has the
    /// database open, copy the backup over the database file, remove the files of the same name that end in `-wal` and
    /// `-shm`, start again.
    package func backup(
        to destination: String,
        progress: @escaping @Sendable (_ pagesCopied: Int, _ pagesInAll: Int) -> Void = { _, _ in }
    ) async throws(StoreError) {
        guard !DatabaseFile.exists(destination) else {
            throw StoreError(.cannotOpen, "\(destination) exists already: a backup replaces no file. Name another.")
        }
        let queue = SQLiteConnectionQueue(try openForBackup(), label: "sqlite.backup") { [self] in leaseTimeNow }
        let temporary = "\(destination).partial-\(String(random.nextBits(), radix: 16))"
        let timeout = timeout
        let outcome: Result<Void, StoreError>
        do {
            try await queue.run { source throws(StoreError) in
                try DatabaseFile.create(temporary, unlessExists: false)
                try Self.copy(source, to: temporary, timeout: timeout, progress: progress)
                try DatabaseFile.publish(temporary, as: destination)
            }
            outcome = .success(())
        } catch {
            DatabaseFile.remove(temporary)
            outcome = .failure(error)
        }
        await queue.close()
        try outcome.get()
    }

    /// Returns the problems that SQLite finds in the file, or none if it is sound. Reads the whole file.
    package func integrityProblems() async throws -> [String] {
        try await scanner.run { [bootID] connection throws(StoreError) in
            do throws(StoreError) {
                return try connection.problems(by: Self.integrityCheck)
            } catch {
                throw Self.confirmed(error, bootID: bootID)
            }
        }
    }

    private func openForBackup() throws(StoreError) -> sending SQLiteConnection {
        try SQLiteConnection.reader(path: path, leases: leases, timeout: timeout)
    }

    private static func copy(
        _ source: SQLiteConnection,
        to path: String,
        timeout: Duration,
        progress: (_ pagesCopied: Int, _ pagesInAll: Int) -> Void
    ) throws(StoreError) {
        let copy = try SQLiteConnection(path: path, timeout: timeout)
        try copy.execute(beforeCopy)
        // In one read transaction: otherwise each commit of a worker would restart the copy.
        try source.read { () throws(StoreError) in
            _ = try source.integer(beginSnapshot)
            try source.backup(into: copy, pagesPerStep: pagesPerStep, progress: progress)
        }
        try copy.execute(removeWorkers)
        try copy.execute(leaveLogMode)
        let problems = try copy.problems(by: quickCheck)
        guard problems.isEmpty else {
            throw StoreError(
                .corrupt,
                "The copy of \(source.path) is damaged, so the database itself might be: "
                    + "\(problems.joined(separator: "; "))"
            )
        }
    }
}

extension SQLiteStore {
    static let quickCheck = SQLQuery("quick check", sql: "PRAGMA quick_check")

    /// Reads the whole file again after one read has reported damage, and returns the error that the process should end
    /// with.
    ///
    /// A file is called damaged only if two checks find the same problem: a broken cable or memory gives wrong data
    /// once, and the advice to restore a backup would then lose every token that was rotated since. It blocks, and
    /// takes minutes for a large file.
    package static func confirmed(_ error: StoreError) -> StoreError { confirmed(error, bootID: SystemTime.bootID) }

    static func confirmed(_ error: StoreError, bootID: String?) -> StoreError {
        guard let path = error.suspectedFile, DatabaseFile.exists(path) else { return error }
        let leases = bootID.map { LeaseFile(of: path, bootID: $0).path }
        do throws(StoreError) {
            let problems = try lastingProblems(of: path)
            guard problems.isEmpty else { return StoreError(damaged: path, problems: problems) }
            if let leases, isDamaged(leases) { return StoreError(damagedLeasesOf: path) }
        } catch {
            return error
        }
        return StoreError(
            .ioFailure,
            "A read from the database \(path) returned damaged data, but a second read found the whole file intact. "
                + "Try again, and check the disk and the system log. The first error: \(error.message)"
        )
    }

    /// `true` if a process has the database open. This process must not.
    package static func isInUse(_ path: String) -> Bool {
        let path = DatabaseFile.resolved(path)
        return [path, path + "-shm"].contains { DatabaseFile.isLocked($0) }
    }

    /// `true` if two checks of a file have found the same problem.
    package static func isDamaged(_ path: String) -> Bool {
        guard DatabaseFile.exists(path) else { return false }
        do {
            return try !lastingProblems(of: path).isEmpty
        } catch {
            return false
        }
    }

    /// Returns the problems that two checks of a file have both found.
    private static func lastingProblems(of path: String) throws(StoreError) -> [String] {
        let first = try problems(of: path)
        guard !first.isEmpty else { return [] }
        let second = Set(try problems(of: path))
        return first.filter(second.contains)
    }

    private static func problems(of path: String) throws(StoreError) -> [String] {
        do throws(StoreError) {
            // Not a connection of the store, which has pages in its cache.
            let connection = try SQLiteConnection(path: path, timeout: .seconds(10))
            connection.keepLogOnClose(true)
            return try connection.problems(by: quickCheck)
        } catch {
            guard error.code == .corrupt else { throw error }
            return ["it cannot be read"]
        }
    }
}

extension SQLiteConnection {
    /// Returns the problems that a check of the file finds. SQLite's check lists a page that it could not read like one
    /// that is damaged. Here the check fails instead.
    func problems(by check: SQLQuery) throws(StoreError) -> [String] {
        let problems = try rows(check) { $0.text() }.filter { $0 != "ok" }
        guard !problems.contains(where: StoreError.isFailedRead) else {
            throw StoreError(
                .ioFailure,
                "Reading the database \(path) failed while it was checked. Try again; if it fails again, check the "
                    + "disk and the system log."
            )
        }
        return problems
    }
}

private import Base

/// The progress of a backup.
package struct BackupProgress: Hashable, Sendable {
    package var pagesCopied: Int
    package var pagesInAll: Int
}

extension SQLiteStore {
    /// 2 MB with SQLite's usual pages: a step takes much less than a tenth of a second.
    private static let pagesPerStep: Int32 = 512
    private static let beginSnapshot = SQLQuery("begin snapshot", "SELECT count(*) FROM meta")
    private static let beforeCopy = SQLQuery(
        "prepare backup",
        "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY"
    )
    private static let removeWorkers = SQLQuery("remove workers from backup", "DELETE FROM workers")
    private static let leaveLogMode = SQLQuery("make the backup one file", "PRAGMA journal_mode = DELETE")
    private static let integrityCheck = SQLQuery("integrity check", "PRAGMA integrity_check")

    /// Writes a copy of the database to a new file of mode 0600, while workers continue to read and write.
    ///
    /// The copy is a snapshot of one moment. It is written under a temporary name next to `destination`, checked, made
    /// durable, and only then gets its name; an existing file is never replaced. The log grows during the copy.
    ///
    /// Leases and workers are not part of it: no process uses the copy. To restore it: stop every process that has the
    /// database open, copy the backup over the database file, remove the files of the same name that end in `-wal` and
    /// `-shm`, start again.
    package func backup(
        to destination: String,
        progress: @escaping @Sendable (BackupProgress) -> Void = { _ in }
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

    /// Returns the problems that SQLite finds in the file; empty if it is sound.
    ///
    /// Reads the whole file.
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
        progress: (BackupProgress) -> Void
    ) throws(StoreError) {
        let copy = try SQLiteConnection(path: path, timeout: timeout)
        try copy.execute(beforeCopy)
        // In one read transaction: otherwise each commit of a worker would restart the copy.
        try source.read { () throws(StoreError) in
            _ = try source.integer(beginSnapshot)
            let pages = try source.backup(into: copy)
            while try pages.step(pages: pagesPerStep) {
                progress(pages.progress)
            }
            progress(pages.progress)
        }
        try copy.execute(removeWorkers)
        try copy.execute(leaveLogMode)
        let problems = try copy.problems(by: quickCheck)
        guard problems.isEmpty else {
            throw StoreError(
                .corrupt,
                "The copy of \(source.path) is damaged, so the database itself may be: "
                    + "\(problems.joined(separator: "; "))"
            )
        }
    }
}

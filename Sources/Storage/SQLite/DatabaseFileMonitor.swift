import Base

/// The last known state of a writer's files, by which it detects that another program changes, replaces or deletes
/// them.
///
/// Only checkpoints change the database file, and each leaves a note of the file's size, modification time and content
/// next to the leases. Any other change comes from outside: a backup copied over the file, a truncation, another
/// program. The log's file is never replaced while a process has the database open.
///
/// A modification time alone does not prove a change: `touch` sets it, and so do tools that restore times. So the
/// content is compared when the time differs (docs/decisions/0002-only-checkpoints-change-the-database-file.md).
struct DatabaseFileMonitor: Sendable {
    /// The largest size of a file whose content is compared. Each checkpoint reads the whole file while writers wait:
    /// 13 ms for this size, measured with the file in memory.
    static let maximumComparedSize: Int64 = 32 << 20
    /// The time in which a second write can leave the modification time as it is, in nanoseconds: more than a tick of
    /// the kernel's clock.
    static let timeResolution: Int64 = 100_000_000

    /// The note of the last checkpoint.
    struct Note: Hashable, Sendable {
        var number: Int64
        var isRunning: Bool
        var size: Int64
        var modifiedAt: Int64
        /// A digest of the content, or `nil` for a file that is too large.
        var digest: Int64?

        /// `true` if it says how a checkpoint has left the database, and not how it was when the leases' file was made.
        var isOfCheckpoint: Bool { !isRunning && number > 0 }

        /// `true` if the file is as the checkpoint has left it.
        func describes(_ facts: FileIdentity) -> Bool {
            !isRunning && size == facts.size && modifiedAt == facts.modifiedAt
        }
    }

    let database: FileIdentity
    let log: FileIdentity?
    let index: FileIdentity?
    /// The number of the checkpoint that `size`, `modifiedAt` and `digest` belong to, or `nil` while they are unknown.
    var checkpoint: Int64?
    var size: Int64
    var modifiedAt: Int64
    var digest: Int64?
    /// The note as the current transaction has read it.
    var note: Note

    /// Takes over the note of the last checkpoint of any process.
    mutating func record(_ note: Note) {
        self.note = note
        guard note.isOfCheckpoint, note.number != checkpoint else { return }
        (checkpoint, size, modifiedAt, digest) = (note.number, note.size, note.modifiedAt, note.digest)
    }

    /// `true` if nothing but another program can have changed the file.
    fileprivate var isAfterLastCheckpoint: Bool { checkpoint == note.number && !note.isRunning }

    fileprivate func differs(from facts: FileIdentity) -> Bool {
        facts.size != size || facts.modifiedAt != modifiedAt
    }
}

extension SQLiteConnection {
    private static let readState = SQLQuery(
        "state of the database",
        sql: """
            SELECT (SELECT value FROM main.meta WHERE key = '\(SQLiteStore.movedKey)'),
                number, is_running, size, modified_at, digest
            FROM \(LeaseFile.schema).checkpoints
            """
    )
    private static let readNote = SQLQuery(
        "note of checkpoint",
        sql: "SELECT number, is_running, size, modified_at, digest FROM \(LeaseFile.schema).checkpoints"
    )

    func storedNote() throws(StoreError) -> DatabaseFileMonitor.Note? {
        try first(Self.readNote) { (row: inout SQLiteRow) throws(StoreError) in DatabaseFileMonitor.Note(&row) }
    }

    /// Starts to monitor the files.
    ///
    /// The connection must not be in a transaction.
    ///
    /// The database and its log remain those of `former`: only the file of leases is another one, whose first note says
    /// how the database was when that file was made.
    func monitorFiles(leases: LeaseFile, since former: DatabaseFileMonitor? = nil) throws(StoreError) {
        try begin()
        defer { rollBack() }
        let note = try storedNote()
        guard let note, let facts = try DatabaseFile.identity(of: path) else {
            throw StoreError(.ioFailure, "The database \(path) or its file of leases was deleted just now. Try again.")
        }
        let log = try DatabaseFile.identity(of: logPath)
        let index = try DatabaseFile.identity(of: indexPath)
        let isNoted = note.describes(facts)
        let isKnown = former != nil && note.isOfCheckpoint
        fileMonitor = DatabaseFileMonitor(
            database: former?.database ?? facts,
            log: former?.log ?? log,
            index: former?.index ?? index,
            checkpoint: note.isRunning ? nil : note.number,
            size: isKnown ? note.size : facts.size,
            modifiedAt: isKnown ? note.modifiedAt : facts.modifiedAt,
            digest: isNoted || isKnown ? note.digest : comparableDigest(of: facts),
            note: note
        )
    }

    /// Reads the note of the last checkpoint at the beginning of a transaction, and throws if the database was moved.
    func readState(evenIfMoved: Bool = false) throws(StoreError) {
        guard fileMonitor != nil else { return }
        if let attached, try !attached.leases.identity.continues(attached.identity) {
            throw StoreError(
                .ioFailure,
                "The file of leases \(attached.leases.path) was deleted or replaced just now. Try again: a new one is made."
            )
        }
        let state = try first(Self.readState) { (row: inout SQLiteRow) throws(StoreError) in
            (movedTo: row.optionalText(), note: DatabaseFileMonitor.Note(&row))
        }
        guard let state else { throw StoreError(damagedLeasesOf: path) }
        if !evenIfMoved, let location = state.movedTo { throw StoreError(moved: path, to: location) }
        fileMonitor?.record(state.note)
    }

    /// Throws if the files are not those that were opened, or if another program has changed them. It is called at the
    /// end of a transaction, whose lock excludes checkpoints.
    func requireSameFiles() throws(StoreError) {
        guard let fileMonitor else { return }
        guard let facts = try DatabaseFile.identity(of: path), facts == fileMonitor.database else {
            throw replaced("was deleted, renamed or replaced")
        }
        if fileMonitor.isAfterLastCheckpoint, fileMonitor.differs(from: facts) {
            try requireSameContent(as: fileMonitor, facts: facts)
        }
        if let log = fileMonitor.log {
            let found = try DatabaseFile.identity(of: logPath)
            guard let found, found == log else {
                if found == nil { recoverLog() }
                throw replaced("has lost its log \(logPath), which was deleted")
            }
            guard found.size >= Int64(logState()?.size ?? 0) else {
                throw replaced("has lost a part of its log \(logPath), which was truncated")
            }
        }
        // Without the common index, another process would write over what this one adds to the log.
        guard let index = fileMonitor.index, try DatabaseFile.identity(of: indexPath) != index else { return }
        throw StoreError(
            .replaced,
            "The shared index \(indexPath) of the database was deleted while it is in use, so nothing more is stored. "
                + "The database and its log are complete. Stop every worker and cron job of \(path), and start again."
        )
    }

    /// Throws if another program has changed the database, as far as the notes in the attached file of leases show.
    func requireSameDatabase() throws(StoreError) {
        try begin()
        defer { rollBack() }
        let note = try storedNote()
        if let note { fileMonitor?.record(note) }
        try requireSameFiles()
    }

    /// Throws unless only the file's modification time has changed.
    private func requireSameContent(as fileMonitor: DatabaseFileMonitor, facts: FileIdentity) throws(StoreError) {
        guard facts.size == fileMonitor.size else {
            throw replaced(facts.size < fileMonitor.size ? "was truncated" : "was overwritten by something else")
        }
        guard let digest = fileMonitor.digest else {
            throw replaced(
                "was overwritten by something else, or `touch` or a backup tool has set its modification time "
                    + "(contents are compared up to \(DatabaseFileMonitor.maximumComparedSize >> 20) MiB only; after "
                    + "`touch` it is enough to start again),"
            )
        }
        guard try contentDigest(size: facts.size) == digest else { throw replaced("was overwritten by something else") }
        // A write in progress can leave this time as it is, so the next transaction checks again.
        guard let now = DatabaseFile.fileClock, abs(now - facts.modifiedAt) > DatabaseFileMonitor.timeResolution else {
            return
        }
        self.fileMonitor?.modifiedAt = facts.modifiedAt
    }

    /// Returns a digest of the file's content.
    ///
    /// It is `nil` if the file is too large to be read at each checkpoint, cannot be read, or was changed by another
    /// program during the read. Without a digest a changed modification time counts as changed content.
    func comparableDigest(of facts: FileIdentity) -> Int64? {
        guard facts.size <= maximumComparedSize else { return nil }
        do throws(StoreError) {
            let digest = try contentDigest(size: facts.size)
            guard let now = try DatabaseFile.identity(of: path), now == facts else { return nil }
            // Identities are equal whatever the size and the time.
            guard now.size == facts.size, now.modifiedAt == facts.modifiedAt else { return nil }
            return digest
        } catch {
            return nil
        }
    }

    /// Copies the content of a deleted log into the database file, while this process still has it open.
    private func recoverLog() {
        do {
            _ = try checkpointer?.copyDatabaseLog(after: synced)
        } catch {
            // The error about the deleted file follows in any case.
            return
        }
    }

    private func replaced(_ what: String) -> StoreError {
        StoreError(
            .replaced,
            "The database \(path) \(what) while it is in use, so nothing more is stored there. Stop every worker and "
                + "cron job, keep copies of the file and of those whose names begin with it, and put the right file "
                + "back: the one that was there, or else the latest backup. Then start again."
        )
    }
}

extension DatabaseFileMonitor.Note {
    fileprivate init(_ row: inout SQLiteRow) {
        self.init(
            number: row.integer(),
            isRunning: row.integer() != 0,
            size: row.integer(),
            modifiedAt: row.integer(),
            digest: row.optionalInteger()
        )
    }
}

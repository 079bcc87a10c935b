import Store

/// What a writer knows of its files, so that it notices when something else changes, replaces or deletes them.
///
/// The database file is changed by checkpoints only, and each leaves a note of the file's size and time of change beside the
/// leases. Any other change is a stranger's: a backup copied over the file, a truncation, another program. The log's
/// file is never replaced while somebody has the database open.
struct FileWatch: Sendable {
    enum Purpose {
        case leases
        case results
    }

    /// The note of the last checkpoint.
    struct Note: Hashable, Sendable {
        var number: Int64
        var isRunning: Bool
        var size: Int64
        var modifiedAt: Int64
    }

    let database: DatabaseFile.Identity
    let log: DatabaseFile.Identity?
    let leases: DatabaseFile.Identity
    let leasePath: String
    /// The number of the checkpoint that `size` and `modifiedAt` are of; `nil` while they are unknown.
    var checkpoint: Int64?
    var size: Int64
    var modifiedAt: Int64
    /// The note as the present transaction has read it.
    var note: Note

    /// Takes over what the last checkpoint of any process has noted.
    mutating func learn(_ note: Note) {
        self.note = note
        guard !note.isRunning, note.number != checkpoint, note.number > 0 else { return }
        (checkpoint, size, modifiedAt) = (note.number, note.size, note.modifiedAt)
    }
}

extension Connection {
    private static let readStanding = Query(
        "standing",
        """
        SELECT (SELECT value FROM main.meta WHERE key = '\(SQLiteStore.movedKey)'), number, is_running, size, modified_at
        FROM \(LeaseFile.schema).checkpoints
        """
    )
    private static let readNote = Query(
        "note of checkpoint",
        "SELECT number, is_running, size, modified_at FROM \(LeaseFile.schema).checkpoints"
    )

    /// Begins to watch the files; the connection must not be in a transaction.
    func watchFiles(leases: LeaseFile) throws(StoreError) {
        try begin()
        defer { rollBack() }
        let note = try first(Self.readNote) { (row: inout Row) throws(StoreError) in FileWatch.Note(&row) }
        guard let note, let facts = try DatabaseFile.facts(of: path),
            let leaseFacts = try DatabaseFile.facts(of: leases.path)
        else {
            throw StoreError(.input, "The database \(path) or its file of leases was deleted just now. Try again.")
        }
        watch = FileWatch(
            database: facts.identity,
            log: try DatabaseFile.facts(of: logPath)?.identity,
            leases: leaseFacts.identity,
            leasePath: leases.path,
            checkpoint: note.isRunning ? nil : note.number,
            size: facts.size,
            modifiedAt: facts.modifiedAt,
            note: note
        )
    }

    /// Reads the note of the last checkpoint, and throws if everything was copied to another database; for the beginning of a
    /// transaction.
    func readStanding(evenIfMoved: Bool = false) throws(StoreError) {
        guard watch != nil else { return }
        let standing = try first(Self.readStanding) { (row: inout Row) throws(StoreError) in
            (place: row.optionalText(), note: FileWatch.Note(&row))
        }
        guard let standing else { throw StoreError(damagedLeasesOf: path) }
        if !evenIfMoved, let place = standing.place { throw StoreError(moved: path, to: place) }
        watch?.learn(standing.note)
    }

    /// Throws if the files are not those that were opened, or if something else has changed them; for the end of a
    /// transaction, whose lock keeps checkpoints away.
    func requireOwnFiles(_ purpose: FileWatch.Purpose) throws(StoreError) {
        guard let watch else { return }
        guard let facts = try DatabaseFile.facts(of: path), facts.identity == watch.database else {
            throw replaced("was deleted, renamed or replaced")
        }
        if watch.checkpoint == watch.note.number, !watch.note.isRunning,
            facts.size != watch.size || facts.modifiedAt != watch.modifiedAt
        {
            throw replaced(facts.size < watch.size ? "was truncated" : "was overwritten by something else")
        }
        switch purpose {
        case .leases:
            guard try DatabaseFile.facts(of: watch.leasePath)?.identity == watch.leases else { throw leasesGone(watch) }
        case .results:
            guard let log = watch.log else { return }
            let found = try DatabaseFile.facts(of: logPath)
            guard let found, found.identity == log else {
                if found == nil { rescueLog() }
                throw replaced("has lost its log \(logPath), which was deleted")
            }
            guard found.size >= Int64(logState()?.size ?? 0) else {
                throw replaced("has lost a part of its log \(logPath), which was truncated")
            }
        }
    }

    /// Copies what a deleted log holds into the database file, as long as this process still has it open.
    private func rescueLog() {
        do {
            _ = try checkpointer?.copyDatabaseLog(after: synced)
        } catch {
            // The error that says what was deleted follows in any case.
            return
        }
    }

    private func replaced(_ what: String) -> StoreError {
        StoreError(
            .replaced,
            "The database \(path) \(what) while it is in use, so nothing more is stored there. Stop every worker and cron job, "
                + "keep copies of the file and of those whose names begin with it, and put the right file back: the one "
                + "that was there, or else the latest backup. Then start again."
        )
    }

    private func leasesGone(_ watch: FileWatch) -> StoreError {
        StoreError(
            .replaced,
            "The file of leases \(watch.leasePath) was deleted or replaced while it is in use, so nothing more is refreshed. "
                + "Restart every worker of the database \(path). The file holds no tokens."
        )
    }
}

extension FileWatch.Note {
    fileprivate init(_ row: inout Row) {
        self.init(
            number: row.integer(),
            isRunning: row.integer() != 0,
            size: row.integer(),
            modifiedAt: row.integer()
        )
    }
}

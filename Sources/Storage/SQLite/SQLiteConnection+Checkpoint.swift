import Base

/// Checkpoints: the copying of a write-ahead log into its database file.
///
/// SQLite 3.7.0 to 3.51.2 can lose commits when a checkpoint overlaps a commit of another connection
/// (https://sqlite.org/wal.html#walresetbug). So SQLite never begins a checkpoint itself, and those of this program run
/// only while the writer's connection holds the lock that every commit of every process needs.
extension SQLiteConnection {
    private static let noteBegin = SQLQuery(
        "note begin of checkpoint",
        sql: "UPDATE \(LeaseFile.schema).checkpoints SET is_running = 1"
    )
    private static let noteEnd = SQLQuery(
        "note end of checkpoint",
        sql: """
            UPDATE \(LeaseFile.schema).checkpoints
            SET number = number + 1, is_running = 0, size = ?1, modified_at = ?2, digest = ?3
            """
    )
    private static let cutLog = SQLQuery("cut the log", sql: "PRAGMA journal_size_limit = 0")
    private static let keepLog = SQLQuery("keep the log's size", sql: "PRAGMA journal_size_limit = \(logSizeLimit)")
    /// The size that the log's file keeps for its next run. The rest is cut off.
    static let logSizeLimit = 67_108_864
    /// Attempts to restart a log while readers come and go.
    private static let maximumAttempts = 10

    /// `true` if a log is so long that a checkpoint is due.
    var hasLongLog: Bool { checkpointer != nil && (isLogLong || isLeaseLogLong) }
    private var isLogLong: Bool {
        guard let log = logState() else { return false }
        if log.frames >= nextCheckpointLength { return true }
        return log.frames >= nextShortCheckpointLength && isSpaceShort(for: log)
    }

    /// `true` if the log has taken half of the space that was free before it.
    ///
    /// A checkpoint needs space itself. In the worst case each page of the log is a new one of the database file, which
    /// grows as much as the log did. With less than that, a log that has filled the disk cannot be copied any more.
    private func isSpaceShort(for log: LogState) -> Bool {
        guard let freeSpace = freeSpace() else { return false }
        return freeSpace <= Int64(log.size)
    }

    private var isLeaseLogLong: Bool { (logState(of: LeaseFile.schema)?.frames ?? 0) >= LogState.leaseCheckpointLength }

    /// Copies the logs into their database files while no process can commit. It returns `true` if the database's log
    /// is copied completely, and `false` if a reader is in the way.
    func checkpoint() throws(StoreError) -> Bool {
        while true {
            try beginCheckpoint()
            guard let isComplete = try endCheckpoint() else { continue }
            // The notes are themselves in the log of the leases.
            try copyLeaseLog()
            return isComplete
        }
    }

    /// Notes that a checkpoint begins. If the process is killed during the checkpoint, the note stays, and no process
    /// takes the writes for those of another program.
    func beginCheckpoint() throws(StoreError) {
        guard checkpointer != nil else { throw StoreError(.fault, "Only the writer's connection copies the log.") }
        try write(evenIfMoved: true) { () throws(StoreError) in
            try run(Self.noteBegin)
        }
    }

    /// Copies the database's log and notes how the file is then.
    ///
    /// Returns `nil`, and copies nothing, if another process has ended a checkpoint since this one began: its note says
    /// that none runs, so every process would take the writes of this one for those of another program.
    func endCheckpoint() throws(StoreError) -> Bool? {
        try write(evenIfMoved: true) { () throws(StoreError) in
            guard let checkpointer, try storedNote()?.isRunning == true else { return nil }
            let isComplete = try checkpointer.copyDatabaseLog(after: synced)
            if isComplete, let state = logState() { synced = state }
            if let facts = try DatabaseFile.identity(of: path) {
                let values = [facts.size, facts.modifiedAt, comparableDigest(of: facts)].map { SQLValue.integer($0) }
                try run(SQLStatement(Self.noteEnd, values))
            }
            return isComplete
        }
    }

    /// Copies the log of the leases into its file, while no process can commit.
    func copyLeaseLog() throws(StoreError) {
        try begin()
        defer { rollBack() }
        _ = try checkpointer?.copyLog(of: LeaseFile.schema)
    }

    /// Copies the database's log, and returns `true` if all of it is copied.
    ///
    /// A checkpoint that a reader cuts short writes pages and does not sync them, but counts them as copied. If a later
    /// sync fails, they are lost, and no repetition writes them again. So unless the last checkpoint was complete, this
    /// one begins at the first frame.
    func copyDatabaseLog(after synced: LogState?) throws(StoreError) -> Bool {
        // The shared index exists only after a first statement.
        _ = try integer(SQLiteSchema.readVersion)
        if let state = logState(), state.copied > 0, !state.isCopied {
            let isSynced = synced?.salts == state.salts && synced?.copied == state.copied
            if !isSynced { copyLogAgain() }
        }
        guard try copyLog(of: "main"), let state = logState() else { return false }
        return state.isCopied
    }

    /// Copies the log and restarts it at its beginning, or returns `false` if readers are in the way. `cuts` is `true`
    /// if the file is cut off after the new beginning, because it might hold deleted tokens.
    func restartLog(cuts: Bool) throws(StoreError) -> Bool {
        for _ in 0..<Self.maximumAttempts {
            guard let state = logState(), state.frames > 0 || cuts else { return true }
            guard try checkpoint() else { return false }
            try touchHeader(cuts: cuts)
            guard let next = logState() else { return true }
            // Another process might have been the first to write to the log. Then this one has not cut it.
            if next.salts != state.salts, !cuts || next.frames <= 1 { return true }
        }
        return false
    }

    /// Commits a small change: the first commit after a complete checkpoint goes to the beginning of the log, if no
    /// reader uses it, and then cuts the file to the limit of its size.
    private func touchHeader(cuts: Bool) throws(StoreError) {
        if cuts { try execute(Self.cutLog) }
        let outcome: Result<Void, StoreError>
        do {
            outcome = .success(
                try write(evenIfMoved: true) { () throws(StoreError) in
                    // Read here: another process can change the schema before this transaction begins.
                    let version = try integer(SQLiteSchema.readVersion)
                    try execute(SQLQuery("touch the file's header", sql: "PRAGMA user_version = \(version)"))
                }
            )
        } catch {
            outcome = .failure(error)
        }
        if cuts { try execute(Self.keepLog) }
        try outcome.get()
    }

    /// Copies the logs that have grown long, and tries again later if a reader was in the way.
    func shortenLogs() throws(StoreError) {
        if isLeaseLogLong { try copyLeaseLog() }
        guard isLogLong else { return }
        nextCheckpointLength = LogState.checkpointLength
        nextShortCheckpointLength = LogState.shortCheckpointLength
        if try !restartLog(cuts: false) {
            let frames = logState()?.frames ?? 0
            nextCheckpointLength = frames + LogState.checkpointLength / 4
            nextShortCheckpointLength = frames + LogState.shortCheckpointLength / 4
        }
    }

    /// Makes room for commits on a full disk, by copying the logs, whose files are then used again from the beginning.
    /// The leases come first: a checkpoint of the database writes notes to their log, which cannot grow either.
    func makeRoom() throws(StoreError) {
        guard checkpointer != nil, fullDisk == nil else { return }
        try copyLeaseLog()
        _ = try restartLog(cuts: false)
    }

    /// Makes the log of an earlier process durable.
    ///
    /// A process whose sync failed might have been killed right after it. SQLite's recovery takes its frames for
    /// committed, although a power cut would lose them, together with all that is committed after them. A restarted log
    /// has no such gap. If readers prevent the restart, the log's bytes are written again as they are, which makes the
    /// kernel sync them.
    func secureLog() throws(StoreError) {
        guard let log = try DatabaseFile.identity(of: logPath), log.size > 0 else { return }
        needsWipe = true
        if try restartLog(cuts: true) {
            needsWipe = false
            return
        }
        try write(evenIfMoved: true) { () throws(StoreError) in
            try writeLogAgain()
        }
    }
}

/// The state of a write-ahead log at one time.
struct LogState: Hashable, Sendable {
    /// The length, in frames, at which a log is copied into its database file: 16 MB. A page that many commits write,
    /// such as one of the due index, is copied once for each 16 MB of log.
    static let checkpointLength = 4000
    /// A log is copied from this length if space is short: 1 MB. Each checkpoint costs two syncs.
    static let shortCheckpointLength = 256
    /// The same for the leases, whose file has few pages.
    static let leaseCheckpointLength = 1000

    /// The identity of this run of the log, from its beginning until it is restarted.
    var salts: UInt64
    /// Committed frames.
    var frames: Int
    /// Frames that are copied into the database file.
    var copied: Int
    var pageSize: Int

    var isCopied: Bool { copied == frames }

    /// The smallest size of the log's file, in bytes (https://sqlite.org/fileformat2.html#walformat).
    var size: Int { frames == 0 ? 0 : 32 + frames * (24 + pageSize) }
}

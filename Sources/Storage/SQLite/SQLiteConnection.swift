private import Base
private import CSQLite

/// Owns one connection to the database file, and the statements prepared on it.
///
/// It is not thread-safe, and SQLite's own mutex is left out: ``SQLiteConnectionQueue`` lends it to one caller at a
/// time. It is `@safe` because its pointer is set once, never leaves it, and is closed only when no caller can use it
/// any more.
@safe
final class SQLiteConnection {
    /// The result of registering this program's VFS, which distinguishes failed reads from damage (`vfs.h` of CSQLite).
    private static let vfsRegistration = csqlite_register_vfs()
    private static let attach = SQLQuery("attach leases", sql: "ATTACH DATABASE ? AS \(LeaseFile.schema)")
    private static let detach = SQLQuery("detach leases", sql: "DETACH DATABASE \(LeaseFile.schema)")

    let path: String
    /// The path of the write-ahead log.
    let logPath: String
    /// The path of the log's index, which all processes share in memory.
    var indexPath: String { String(logPath.dropLast("-wal".count)) + "-shm" }
    /// `true` after a token was deleted: the log holds the former page until it is written back.
    var needsWipe = false
    /// Why nothing can be committed: the steps before the first commit found a full disk.
    var fullDisk: StoreError?
    /// The connection that copies the log while this one excludes all commits. Only the writer has one.
    var checkpointer: SQLiteConnection?
    /// The log's state after this process's last complete and synced checkpoint.
    var synced: LogState?
    /// The next checkpoint is due at so many frames.
    var nextCheckpointLength = LogState.checkpointLength
    /// The same while space is short.
    var nextShortCheckpointLength = LogState.shortCheckpointLength
    /// Returns the number of bytes that can still be written beside the database, or `nil` if it is unknown.
    var freeSpace: () -> Int64?
    /// The lock of the writer, which is closed last, or `nil` for other connections.
    var nameLock: DatabaseNameLock?
    /// The attached file of leases. Only the writer knows more than the identity of the file itself.
    var attached: AttachedLeases?
    /// The last known state of the files that this connection writes to. Only the writer has one.
    var fileMonitor: DatabaseFileMonitor?
    /// The size up to which the file's content is compared when its modification time has changed.
    var maximumComparedSize = DatabaseFileMonitor.maximumComparedSize
    private let handle: OpaquePointer
    let timeout: Duration
    private var statements: [UInt64: Statement] = [:]

    /// Opens an existing file. `timeout` is the time that a statement waits for another connection's lock.
    init(path: String, timeout: Duration) throws(StoreError) {
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        var opened: OpaquePointer?
        var result = Self.vfsRegistration
        if result == SQLITE_OK { result = unsafe sqlite3_open_v2(Self.name(path), &opened, flags, CSQLITE_VFS_NAME) }
        guard result == SQLITE_OK, let handle = unsafe opened else {
            let detail = unsafe String(cString: opened == nil ? sqlite3_errstr(result) : sqlite3_errmsg(opened))
            let cause = unsafe opened == nil ? 0 : sqlite3_system_errno(opened)
            // Even a failed call returns a handle (https://sqlite.org/c3ref/open.html).
            _ = unsafe sqlite3_close_v2(opened)
            // Opening runs no statement that could be wrong. SQLite 3.40 answers so if memory for its own functions is
            // refused.
            if result == SQLITE_ERROR { result = SQLITE_NOMEM }
            throw StoreError(resultCode: result, detail: detail, path: path, during: "opening it", systemError: cause)
        }
        unsafe self.handle = handle
        self.path = path
        logPath = DatabaseFile.log(of: DatabaseFile.resolved(path))
        self.timeout = timeout
        let folder = logPath.parentFolder
        freeSpace = { DatabaseFile.freeSpace(in: folder) }
        setBusyTimeout(timeout)
        // A checkpoint that SQLite begins itself does not exclude other processes' commits. The call only sets a hook.
        _ = unsafe sqlite3_wal_autocheckpoint(handle, 0)
        try requireWriting(to: "main", at: path)
    }

    deinit {
        statements.removeAll()
        // This way of closing cannot fail (https://sqlite.org/c3ref/close.html).
        _ = unsafe sqlite3_close_v2(handle)
    }

    /// Returns the path in a form that SQLite takes for a file. Debian's SQLite takes a name that begins with "file:"
    /// for a URI and ":memory:" for a database in memory: "./" makes it a path.
    private static func name(_ path: String) -> String { path.hasPrefix("/") ? path : "./" + path }

    /// `true` if SQLite opened the file read-only, because it cannot be written.
    var isReadOnly: Bool { unsafe sqlite3_db_readonly(handle, "main") == 1 }

    var isInTransaction: Bool { unsafe sqlite3_get_autocommit(handle) == 0 }

    /// Rows changed by the last statement.
    var changedRows: Int { Int(unsafe sqlite3_changes64(handle)) }

    /// Attaches the file of leases, after which only ``checkpoint()`` copies the logs.
    func attach(_ leases: LeaseFile) throws(StoreError) {
        keepLogOnClose(true)
        let file = try leases.identity.file
        try run(Self.attach) { $0.bind(Self.name(leases.path)) }
        attached = AttachedLeases(leases: leases, identity: LeaseFile.Identity(file: file))
        try requireWriting(to: LeaseFile.schema, at: leases.path)
    }

    func detachLeases() throws(StoreError) {
        if hasLeases { try execute(Self.detach) }
    }

    /// `false` if the file of leases could not be attached again. Each read of a single grant asks, and an implicit
    /// conversion of the name would allocate a copy.
    var hasLeases: Bool { unsafe LeaseFile.schema.withCString { unsafe sqlite3_db_readonly(handle, $0) >= 0 } }

    /// Throws if a file was opened read-only although it can be written.
    private func requireWriting(to schema: String, at path: String) throws(StoreError) {
        guard unsafe sqlite3_db_readonly(handle, schema) == 1, DatabaseFile.mayWrite(path) else { return }
        throw StoreError(openedReadOnly: path, cause: "(opening it)")
    }

    /// Runs statements without parameters and without rows.
    func execute(_ query: SQLQuery) throws(StoreError) { try execute(query.textForSQLite, during: query.name) }

    func execute(_ text: String, during name: String) throws(StoreError) {
        try check(unsafe sqlite3_exec(handle, text, nil, nil, nil), during: name)
    }

    /// Runs a prepared statement to its end.
    func run(_ query: SQLQuery, bind: (Statement) -> Void = { _ in }) throws(StoreError) {
        try prepared(query).run(bind: bind)
    }

    func run(_ statement: SQLStatement) throws(StoreError) { try run(statement.query) { $0.bind(statement.values) } }

    /// Runs statements in order, and returns the number of rows that each has changed.
    func change(_ statements: some Sequence<SQLStatement>) throws(StoreError) -> [Int] {
        var changed: [Int] = []
        for statement in statements {
            try run(statement)
            changed.append(changedRows)
        }
        return changed
    }

    func rows<Element>(
        _ statement: SQLStatement,
        read: (inout SQLiteRow) throws(StoreError) -> Element
    ) throws(StoreError) -> [Element] {
        try rows(statement.query, bind: { $0.bind(statement.values) }, read: read)
    }

    /// Runs a prepared statement and reads each of its rows.
    func rows<Element>(
        _ query: SQLQuery,
        bind: (Statement) -> Void = { _ in },
        read: (inout SQLiteRow) throws(StoreError) -> Element
    ) throws(StoreError) -> [Element] {
        try prepared(query).rows(bind: bind, read: read)
    }

    /// Runs a prepared statement that returns at most one row.
    func first<Element>(
        _ query: SQLQuery,
        bind: (Statement) -> Void = { _ in },
        read: (inout SQLiteRow) throws(StoreError) -> Element
    ) throws(StoreError) -> Element? {
        try prepared(query).first(bind: bind, read: read)
    }

    /// Returns the whole number that a statement selects.
    func integer(_ query: SQLQuery) throws(StoreError) -> Int64 { try first(query) { $0.integer() } ?? 0 }

    /// Returns the state of a schema's log, or `nil` before the first statement, and for a file without a log.
    func logState(of schema: String = "main") -> LogState? {
        var state = csqlite_log_state()
        guard unsafe csqlite_read_log_state(handle, schema, &state) != 0 else { return nil }
        return LogState(
            salts: UInt64(state.salt1) << 32 | UInt64(state.salt2),
            frames: Int(state.frames),
            copied: Int(state.copied),
            pageSize: Int(state.page_size)
        )
    }

    /// Returns a digest of the database file's first bytes, without the log. Only for a caller whose transaction
    /// excludes checkpoints.
    func contentDigest(size: Int64) throws(StoreError) -> Int64 {
        var digest: Int64 = 0
        let result = unsafe csqlite_digest_file(handle, size, &digest)
        guard result == SQLITE_OK else {
            let detail = unsafe String(cString: sqlite3_errstr(result))
            throw StoreError(resultCode: result, detail: detail, path: path, during: "reading it as a whole")
        }
        return digest
    }

    /// Makes the next checkpoint copy the log from its beginning.
    func copyLogAgain() { unsafe csqlite_copy_log_again(handle, "main") }

    /// Copies as much of a log into its database file as readers allow, or returns `false` if another program holds the
    /// lock of checkpoints (https://sqlite.org/c3ref/wal_checkpoint_v2.html).
    ///
    /// Only for ``checkpoint()``, which excludes commits at the same time.
    func copyLog(of schema: String) throws(StoreError) -> Bool {
        let result = unsafe sqlite3_wal_checkpoint_v2(handle, schema, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
        if result & 0xff == SQLITE_BUSY || result & 0xff == SQLITE_LOCKED { return false }
        try check(result, during: "checkpoint")
        return true
    }

    /// Writes the log's frames again, as they are, and syncs them. Only for a caller whose transaction excludes every
    /// commit.
    func writeLogAgain() throws(StoreError) {
        try check(unsafe csqlite_write_log_again(handle, Int64(logState()?.size ?? 0)), during: "securing the log")
    }

    /// Decides if SQLite keeps the logs, or copies and deletes them, when this connection is the last to be closed.
    func keepLogOnClose(_ keeps: Bool) {
        // The call only sets a flag.
        _ = unsafe csqlite_keep_log_on_close(handle, keeps ? 1 : 0)
    }

    /// Copies this connection's database into that of `destination`, a number of pages at a time.
    func backup(
        into destination: SQLiteConnection,
        pagesPerStep: Int32,
        progress: (_ pagesCopied: Int, _ pagesInAll: Int) -> Void
    ) throws(StoreError) {
        guard let copy = unsafe sqlite3_backup_init(destination.handle, "main", handle, "main") else {
            // The error of a failed start is stored with the destination (https://sqlite.org/c3ref/backup_finish.html).
            throw destination.failure(unsafe sqlite3_extended_errcode(destination.handle), during: "backup")
        }
        // Its result repeats that of the last step (https://sqlite.org/c3ref/backup_finish.html).
        defer { _ = unsafe sqlite3_backup_finish(copy) }
        while true {
            let result = unsafe sqlite3_backup_step(copy, pagesPerStep)
            guard result == SQLITE_OK || result == SQLITE_DONE else {
                let detail = unsafe String(cString: sqlite3_errstr(result))
                throw StoreError(resultCode: result, detail: detail, path: path, during: "backup")
            }
            let all = Int(unsafe sqlite3_backup_pagecount(copy))
            progress(all - Int(unsafe sqlite3_backup_remaining(copy)), all)
            if result == SQLITE_DONE { return }
        }
    }

    func failure(_ result: Int32, during action: String) -> StoreError {
        let detail = unsafe String(cString: sqlite3_errmsg(handle))
        let cause = unsafe sqlite3_system_errno(handle)
        return StoreError(resultCode: result, detail: detail, path: path, during: action, systemError: cause)
    }

    private func check(_ result: Int32, during action: String) throws(StoreError) {
        guard result == SQLITE_OK else { throw failure(result, during: action) }
    }

    /// Sets the time that later statements wait for another connection's lock.
    func setBusyTimeout(_ timeout: Duration) {
        // The call only stores a number. It fails only for a handle that is not open.
        _ = unsafe sqlite3_busy_timeout(handle, Int32(clamping: timeout.wholeMilliseconds))
    }

    /// Returns the statement that this connection keeps prepared for a query. A caller that runs it for many rows asks
    /// for it once, because finding it costs as much as a part of the run.
    func prepared(_ query: SQLQuery) throws(StoreError) -> Statement {
        if let statement = statements[query.hash] { return statement }
        var prepared: OpaquePointer?
        let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
        try check(unsafe sqlite3_prepare_v3(handle, query.textForSQLite, -1, flags, &prepared, nil), during: query.name)
        guard let handle = unsafe prepared else {
            throw StoreError(.fault, "The statement \(query.name) is empty. This is a fault of refresh-worker.")
        }
        let statement = unsafe Statement(adopting: handle, named: query.name, path: path)
        statements[query.hash] = statement
        return statement
    }
}

extension SQLiteStore {
    /// The version of the SQLite library that this process runs with.
    package static var libraryVersion: String { unsafe String(cString: sqlite3_libversion()) }

    /// `true` if the library can lose commits when a checkpoint overlaps a commit
    /// (https://sqlite.org/wal.html#walresetbug): 3.7.0 to 3.51.2, except for the repaired 3.44.6 and 3.50.7.
    package static var libraryHasLogResetBug: Bool { hasLogResetBug(library: Int(sqlite3_libversion_number())) }

    static func hasLogResetBug(library number: Int) -> Bool {
        switch number {
        case ..<3_007_000, 3_051_003...: false
        case 3_044_006..<3_045_000, 3_050_007..<3_051_000: false
        default: true
        }
    }
}

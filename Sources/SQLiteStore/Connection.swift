private import CSQLite
private import Clocks
import Store

/// Owns one connection to the database file, and the statements prepared on it.
///
/// It is not thread-safe, and SQLite's own mutex is left out: ``ConnectionQueue`` lends it to one caller at a time. It is
/// `@safe` because its pointer is set once, never leaves it, and is closed only when nobody can call it any more.
@safe
final class Connection {
    let path: String
    /// Set by whoever wiped a token: the log still holds the page as it was before, until it is written back.
    var owesWipe = false
    private let handle: OpaquePointer
    private let patience: Duration
    private var statements: [String: Statement] = [:]

    /// Opens an existing file.
    ///
    /// `patience` is how long a statement waits for another connection's lock.
    init(path: String, patience: Duration) throws(StoreError) {
        // Debian's SQLite takes a name that begins with "file:" for a URI and ":memory:" for no file: "./" makes it a path.
        let name = path.hasPrefix("/") ? path : "./" + path
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        var opened: OpaquePointer?
        let result = unsafe sqlite3_open_v2(name, &opened, flags, nil)
        guard result == SQLITE_OK, let handle = unsafe opened else {
            let detail = unsafe String(cString: opened == nil ? sqlite3_errstr(result) : sqlite3_errmsg(opened))
            // A handle comes back even from a failed call (https://sqlite.org/c3ref/open.html).
            _ = unsafe sqlite3_close_v2(opened)
            throw StoreError(resultCode: result, detail: detail, path: path, during: "opening it")
        }
        unsafe self.handle = handle
        self.path = path
        self.patience = patience
        setPatience(patience)
    }

    deinit {
        statements.removeAll()
        // The zombie way of closing cannot fail (https://sqlite.org/c3ref/close.html).
        _ = unsafe sqlite3_close_v2(handle)
    }

    /// Whether SQLite fell back to reading alone because the file cannot be written.
    var isReadOnly: Bool { unsafe sqlite3_db_readonly(handle, "main") == 1 }

    /// Whether the file that is open lies no longer under its name: it was deleted, renamed or replaced.
    ///
    /// What is written to it still counts for those who have it open, and for nobody who comes later.
    var hasMoved: Bool {
        var answer: Int32 = 0
        let result = unsafe sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &answer)
        return result == SQLITE_OK && answer != 0
    }

    var isInTransaction: Bool { unsafe sqlite3_get_autocommit(handle) == 0 }

    /// Rows changed by the last statement.
    var changedRows: Int { Int(unsafe sqlite3_changes64(handle)) }

    /// Runs statements that take no value and answer none.
    func execute(_ query: Query) throws(StoreError) {
        try check(unsafe sqlite3_exec(handle, query.text, nil, nil, nil), during: query.name)
    }

    /// Runs a prepared statement to its end.
    func run(_ query: Query, bind: (Statement) -> Void = { _ in }) throws(StoreError) {
        _ = try rows(query, bind: bind) { (_: inout Row) throws(StoreError) in }
    }

    /// Runs a prepared statement and reads each of its rows.
    func rows<Element>(
        _ query: Query,
        bind: (Statement) -> Void = { _ in },
        read: (inout Row) throws(StoreError) -> Element
    ) throws(StoreError) -> [Element] {
        let statement = try prepared(query)
        defer { statement.reset() }
        bind(statement)
        var elements: [Element] = []
        while var row = try statement.step() {
            elements.append(try read(&row))
        }
        return elements
    }

    /// Runs a prepared statement that answers one row at most.
    func first<Element>(
        _ query: Query,
        bind: (Statement) -> Void = { _ in },
        read: (inout Row) throws(StoreError) -> Element
    ) throws(StoreError) -> Element? {
        try rows(query, bind: bind, read: read).first
    }

    /// The whole number that a statement answers.
    func integer(_ query: Query) throws(StoreError) -> Int64 {
        try first(query) { (row: inout Row) throws(StoreError) in row.integer() } ?? 0
    }

    /// Writes the log back into the database file and empties it, unless another connection is reading from it just
    /// now.
    ///
    /// Answers whether it is empty (https://sqlite.org/c3ref/wal_checkpoint_v2.html).
    func emptyLog(waiting: Bool) throws(StoreError) -> Bool {
        if !waiting { setPatience(.zero) }
        defer { setPatience(patience) }
        let result = unsafe sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
        if result & 0xff == SQLITE_BUSY || result & 0xff == SQLITE_LOCKED { return false }
        try check(result, during: "checkpoint")
        return true
    }

    /// Begins to copy this connection's database into that of `destination`.
    func backup(into destination: Connection) throws(StoreError) -> PageCopy {
        guard let copy = unsafe sqlite3_backup_init(destination.handle, "main", handle, "main") else {
            // The error of a failed start is left with the destination (https://sqlite.org/c3ref/backup_finish.html).
            throw destination.failure(unsafe sqlite3_extended_errcode(destination.handle), during: "backup")
        }
        return unsafe PageCopy(adopting: copy, from: self)
    }

    func failure(_ result: Int32, during action: String) -> StoreError {
        let detail = unsafe String(cString: sqlite3_errmsg(handle))
        return StoreError(resultCode: result, detail: detail, path: path, during: action)
    }

    private func check(_ result: Int32, during action: String) throws(StoreError) {
        guard result == SQLITE_OK else { throw failure(result, during: action) }
    }

    /// How long the statements that come wait for another connection's lock.
    func setPatience(_ patience: Duration) {
        // The call only stores a number; it fails for a handle that is not open, and this one is.
        _ = unsafe sqlite3_busy_timeout(handle, Int32(clamping: patience.wholeMilliseconds))
    }

    private func prepared(_ query: Query) throws(StoreError) -> Statement {
        if let statement = statements[query.name] { return statement }
        var prepared: OpaquePointer?
        let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
        try check(unsafe sqlite3_prepare_v3(handle, query.text, -1, flags, &prepared, nil), during: query.name)
        guard let handle = unsafe prepared else {
            throw StoreError(.fault, "The statement \(query.name) is empty. This is a fault of refresh-worker.")
        }
        let statement = unsafe Statement(adopting: handle, named: query.name, path: path)
        statements[query.name] = statement
        return statement
    }
}

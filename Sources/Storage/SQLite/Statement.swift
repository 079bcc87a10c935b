import Base
private import CSQLite
private import Glibc

/// Owns one prepared statement, which is bound for each run, reset after it, and finalised at the end.
///
/// It belongs to the queue of its connection. It is `@safe` because its pointer is set once, never leaves it, and is
/// finalised only when no caller can use it any more.
@safe
final class Statement {
    private let handle: OpaquePointer
    private let path: String
    private let name: String
    private var parameters: Int32 = 0
    private var bindFailure: Int32 = SQLITE_OK

    /// Takes over a statement that was just prepared.
    init(adopting handle: OpaquePointer, named name: String, path: String) {
        unsafe self.handle = handle
        self.name = name
        self.path = path
    }

    deinit {
        // Its result repeats the failure of the last step, which was reported then.
        _ = unsafe sqlite3_finalize(handle)
    }

    /// Binds the next parameter. A failure to bind, which only lack of memory can cause, is thrown by the next step.
    func bind(_ value: Int64?) {
        parameters += 1
        guard let value else { return bindNull() }
        note(unsafe sqlite3_bind_int64(handle, parameters, value))
    }

    func bind(_ value: Bool?) { bind(value.map { $0 ? 1 : 0 as Int64 }) }

    func bind(_ value: String?) {
        parameters += 1
        guard var value else { return bindNull() }
        note(
            value.withUTF8 { text in
                unsafe text.withMemoryRebound(to: CChar.self) { text in
                    unsafe csqlite_bind_text(handle, parameters, text.baseAddress, UInt64(text.count))
                }
            }
        )
    }

    func bind(_ value: [UInt8]?) {
        parameters += 1
        guard let value else { return bindNull() }
        note(
            unsafe value.withUnsafeBytes { bytes in
                unsafe csqlite_bind_blob(handle, parameters, bytes.baseAddress, UInt64(bytes.count))
            }
        )
    }

    func bind(_ value: Timestamp?) { bind(value?.milliseconds) }

    func bind(_ values: [SQLValue]) {
        for value in values {
            switch value {
            case .integer(let value): bind(value)
            case .text(let value): bind(value)
            case .bytes(let value): bind(value)
            case .flag(let value): bind(value)
            case .array: note(SQLITE_MISUSE)
            }
        }
    }

    /// Runs to the end.
    func run(bind: (Statement) -> Void) throws(StoreError) {
        defer { reset() }
        bind(self)
        while try step() != nil {}
    }

    /// Runs and reads each row.
    func rows<Element>(
        bind: (Statement) -> Void,
        read: (inout SQLiteRow) throws(StoreError) -> Element
    ) throws(StoreError) -> [Element] {
        var elements: [Element] = []
        try forEachRow(bind: bind) { row throws(StoreError) in elements.append(try read(&row)) }
        return elements
    }

    /// Runs and passes each row on.
    func forEachRow(bind: (Statement) -> Void, read: (inout SQLiteRow) throws(StoreError) -> Void) throws(StoreError) {
        defer { reset() }
        bind(self)
        while var row = try step() { try read(&row) }
    }

    /// Runs to the end and reads the first row, if there is one.
    func first<Element>(
        bind: (Statement) -> Void,
        read: (inout SQLiteRow) throws(StoreError) -> Element
    ) throws(StoreError) -> Element? {
        defer { reset() }
        bind(self)
        guard var row = try step() else { return nil }
        let element = try read(&row)
        while try step() != nil {}
        return element
    }

    /// Runs to the next row, or returns `nil` after the last one.
    private func step() throws(StoreError) -> SQLiteRow? {
        guard bindFailure == SQLITE_OK else { throw failure(bindFailure) }
        let result = unsafe sqlite3_step(handle)
        switch result {
        case SQLITE_ROW: return SQLiteRow(statement: self)
        case SQLITE_DONE: return nil
        default: throw failure(result)
        }
    }

    /// Resets the statement for its next run and releases its row and parameters.
    private func reset() {
        // As with finalize: the result repeats the one of the step.
        _ = unsafe sqlite3_reset(handle)
        _ = unsafe sqlite3_clear_bindings(handle)
        parameters = 0
        bindFailure = SQLITE_OK
    }

    func integer(at column: Int32) -> Int64? {
        let value = unsafe sqlite3_column_int64(handle, column)
        return value == 0 && isNull(at: column) ? nil : value
    }

    func text(at column: Int32) -> String? {
        guard let start = unsafe sqlite3_column_text(handle, column) else { return nil }
        let count = Int(unsafe sqlite3_column_bytes(handle, column))
        return unsafe String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    /// Returns a text. If it is the same as `former`, as it often is in the next row, it is not built again.
    func text(at column: Int32, like former: String) -> String? {
        guard let start = unsafe sqlite3_column_text(handle, column) else { return nil }
        let count = Int(unsafe sqlite3_column_bytes(handle, column))
        let isSame = unsafe former.utf8.withContiguousStorageIfAvailable { former in
            guard former.count == count, let address = former.baseAddress else { return false }
            return unsafe memcmp(address, start, count) == 0
        }
        if isSame ?? false { return former }
        return unsafe String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    func blob(at column: Int32) -> [UInt8]? {
        let start = unsafe sqlite3_column_blob(handle, column)
        // An empty blob has a null pointer too (https://sqlite.org/c3ref/column_blob.html).
        if unsafe start == nil, isNull(at: column) { return nil }
        let count = Int(unsafe sqlite3_column_bytes(handle, column))
        return unsafe [UInt8](UnsafeRawBufferPointer(start: start, count: count))
    }

    /// Called after a value was read: the tables are STRICT, so no value was converted by that, and NULL stays NULL.
    private func isNull(at column: Int32) -> Bool { unsafe sqlite3_column_type(handle, column) == SQLITE_NULL }

    private func bindNull() { note(unsafe sqlite3_bind_null(handle, parameters)) }

    private func note(_ result: Int32) {
        if bindFailure == SQLITE_OK { bindFailure = result }
    }

    private func failure(_ result: Int32) -> StoreError {
        let connection = unsafe sqlite3_db_handle(handle)
        let detail = unsafe String(cString: sqlite3_errmsg(connection))
        let cause = unsafe sqlite3_system_errno(connection)
        return StoreError(resultCode: result, detail: detail, path: path, during: name, systemError: cause)
    }
}

/// The current row of a statement, valid until the next step.
struct SQLiteRow: SQLRow {
    let statement: Statement
    private(set) var column: Int32 = 0

    mutating func optionalInteger() -> Int64? { statement.integer(at: next()) }
    mutating func optionalText() -> String? { statement.text(at: next()) }
    mutating func text(like former: String) -> String? { statement.text(at: next(), like: former) }
    mutating func optionalBlob() -> [UInt8]? { statement.blob(at: next()) }
    mutating func optionalFlag() -> Bool? { optionalInteger().map { $0 != 0 } }

    private mutating func next() -> Int32 {
        defer { column += 1 }
        return column
    }
}

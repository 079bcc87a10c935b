private import CPostgres

/// Owns the server's result of one statement.
///
/// It is `@safe` because its pointer is set once, never leaves it, and is cleared only when no caller can use it any
/// more. All reads stay within the lengths that libpq gives.
@safe
final class StatementResult {
    private let handle: OpaquePointer

    init(adopting handle: OpaquePointer) {
        unsafe self.handle = handle
    }

    deinit { unsafe PQclear(handle) }

    private var status: ExecStatusType { unsafe PQresultStatus(handle) }
    var isDone: Bool { status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY }
    var isEndOfBatch: Bool { status == PGRES_PIPELINE_SYNC }
    /// `true` if an earlier statement failed.
    var isSkipped: Bool { status == PGRES_PIPELINE_ABORTED }

    /// The server's code for the failure.
    var state: String? { unsafe cpostgres_state(handle).map { unsafe String(cString: $0) } }

    /// The server's message about the failure, without any stored value.
    var message: String? {
        guard let primary = unsafe cpostgres_message(handle) else { return nil }
        let text = unsafe String(cString: primary)
        guard let constraint = unsafe cpostgres_constraint(handle) else { return text }
        return unsafe "\(text), constraint \(String(cString: constraint))"
    }

    var rowCount: Int { Int(unsafe PQntuples(handle)) }

    /// Rows that the statement wrote.
    var changedRows: Int {
        guard let text = unsafe PQcmdTuples(handle) else { return 0 }
        return Int(unsafe String(cString: text)) ?? 0
    }

    func rows<Element>(_ read: (inout PostgresRow) throws(StoreError) -> Element) throws(StoreError) -> [Element] {
        var elements: [Element] = []
        elements.reserveCapacity(rowCount)
        for index in 0..<rowCount {
            var row = PostgresRow(result: self, row: Int32(index))
            elements.append(try read(&row))
        }
        return elements
    }

    func first<Element>(_ read: (inout PostgresRow) throws(StoreError) -> Element) throws(StoreError) -> Element? {
        try rows(read).first
    }

    /// Passes the bytes of a value, which are valid until `body` returns, or returns `nil` for NULL.
    func withBytes<Value>(row: Int32, column: Int32, _ body: (UnsafeRawBufferPointer) -> Value) -> Value? {
        guard unsafe PQgetisnull(handle, row, column) == 0, let start = unsafe PQgetvalue(handle, row, column) else {
            return nil
        }
        let count = Int(unsafe PQgetlength(handle, row, column))
        return unsafe body(UnsafeRawBufferPointer(start: start, count: count))
    }
}

/// One row of a result, read from left to right.
struct PostgresRow: SQLRow {
    let result: StatementResult
    let row: Int32
    private(set) var column: Int32 = 0

    mutating func optionalInteger() -> Int64? { unsafe read { bytes in unsafe bytes.bigEndian } }
    mutating func optionalFlag() -> Bool? { unsafe read { bytes in unsafe bytes.first == 1 } }
    mutating func optionalText() -> String? { unsafe read { bytes in unsafe StoredText.read(bytes) } }
    mutating func optionalBlob() -> [UInt8]? { unsafe read { bytes in unsafe [UInt8](bytes) } }

    private mutating func read<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value? {
        defer { column += 1 }
        return unsafe result.withBytes(row: row, column: column, body)
    }
}

private import CPostgres

/// Owns the server's result of one statement.
///
/// It is `@safe` because its pointer is set once, never leaves it, and is cleared only when no caller can use it any
/// more; all reads stay within the lengths that libpq gives.
@safe
final class StatementResult {
    private let handle: OpaquePointer

    init(adopting handle: OpaquePointer) {
        unsafe self.handle = handle
    }

    deinit { unsafe PQclear(handle) }

    enum Kind {
        case done
        /// An earlier statement failed.
        case skipped
        case failed
        /// Marks the end of a batch.
        case endOfBatch
    }

    var kind: Kind {
        switch unsafe PQresultStatus(handle) {
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: .done
        case PGRES_PIPELINE_ABORTED: .skipped
        case PGRES_PIPELINE_SYNC: .endOfBatch
        default: .failed
        }
    }

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

    /// The number of rows that the statement wrote.
    var changedRows: Int {
        guard let text = unsafe PQcmdTuples(handle) else { return 0 }
        return Int(unsafe String(cString: text)) ?? 0
    }

    func rows<Element>(_ read: (inout PostgresRow) throws(StatementFailure) -> Element) throws(StatementFailure)
        -> [Element]
    {
        var elements: [Element] = []
        elements.reserveCapacity(rowCount)
        for index in 0..<rowCount {
            var row = PostgresRow(of: self, at: Int32(index))
            elements.append(try read(&row))
        }
        return elements
    }

    func first<Element>(_ read: (inout PostgresRow) throws(StatementFailure) -> Element) throws(StatementFailure)
        -> Element?
    {
        guard rowCount > 0 else { return nil }
        var row = PostgresRow(of: self, at: 0)
        return try read(&row)
    }

    func integer(row: Int32, column: Int32) -> Int64? {
        unsafe withBytes(row: row, column: column) { bytes in
            unsafe bytes.reduce(0) { $0 << 8 | Int64($1) }
        }
    }

    func flag(row: Int32, column: Int32) -> Bool? {
        unsafe withBytes(row: row, column: column) { bytes in unsafe bytes.first == 1 }
    }

    func text(row: Int32, column: Int32) -> String? {
        unsafe withBytes(row: row, column: column) { bytes in unsafe StoredText.read(bytes) }
    }

    func blob(row: Int32, column: Int32) -> [UInt8]? {
        unsafe withBytes(row: row, column: column) { bytes in unsafe [UInt8](bytes) }
    }

    private func withBytes<Value>(row: Int32, column: Int32, _ body: (UnsafeRawBufferPointer) -> Value) -> Value? {
        guard unsafe PQgetisnull(handle, row, column) == 0, let start = unsafe PQgetvalue(handle, row, column) else {
            return nil
        }
        let count = Int(unsafe PQgetlength(handle, row, column))
        return unsafe body(UnsafeRawBufferPointer(start: start, count: count))
    }
}

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

    /// The number of rows that the statement wrote.
    var changedRows: Int {
        guard let text = unsafe PQcmdTuples(handle) else { return 0 }
        return Int(unsafe String(cString: text)) ?? 0
    }

    func rows<Element>(_ read: (inout PostgresRow) throws(StoreError) -> Element) throws(StatementFailure) -> [Element]
    {
        var elements: [Element] = []
        elements.reserveCapacity(rowCount)
        for index in 0..<rowCount {
            var row = PostgresRow(of: self, at: Int32(index))
            do {
                elements.append(try read(&row))
            } catch {
                throw StatementFailure(error)
            }
        }
        return elements
    }

    func first<Element>(_ read: (inout PostgresRow) throws(StoreError) -> Element) throws(StatementFailure) -> Element?
    {
        try rows(read).first
    }

    func integer(row: Int32, column: Int32) -> Int64? {
        unsafe withBytes(row: row, column: column) { bytes in unsafe bytes.bigEndian }
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

/// One row of a result, read from left to right.
struct PostgresRow: SQLRow {
    private let result: StatementResult
    private let row: Int32
    private var column: Int32 = 0

    init(of result: StatementResult, at row: Int32) {
        self.result = result
        self.row = row
    }

    mutating func optionalInteger() -> Int64? {
        defer { column += 1 }
        return result.integer(row: row, column: column)
    }

    mutating func optionalFlag() -> Bool? {
        defer { column += 1 }
        return result.flag(row: row, column: column)
    }

    mutating func optionalText() -> String? {
        defer { column += 1 }
        return result.text(row: row, column: column)
    }

    mutating func optionalBlob() -> [UInt8]? {
        defer { column += 1 }
        return result.blob(row: row, column: column)
    }
}

/// The reason why statements failed, with the facts that the store itself needs.
struct StatementFailure: Error {
    /// The error for the caller.
    let error: StoreError
    /// The server's code (https://www.postgresql.org/docs/15/errcodes-appendix.html), if it sent one.
    var state: String?
    /// `true` if the connection cannot be used any more.
    var losesConnection = false
    /// `true` if a commit was in flight, so that its outcome is unknown.
    var isUncertain = false

    init(_ error: StoreError, state: String? = nil, losesConnection: Bool = false) {
        self.error = error
        self.state = state
        self.losesConnection = losesConnection
    }

    init(_ code: StoreError.Code, _ message: String) {
        self.init(StoreError(code, message))
    }

    /// Creates the failure for a transaction whose wait for the synchronous standby was cancelled.
    ///
    /// The transaction is repeated by its caller. It locks the same rows, so its commit waits for the standby too, and
    /// the standby gets the first commit before it.
    init(unreplicatedIn database: String) {
        self.init(
            .unreachable,
            "A commit in \(database) did not wait for the synchronous standby, because the wait was cancelled "
                + "(pg_cancel_backend). It counts as not done, and is tried again. Find out who cancels it, and why the "
                + "standby is behind."
        )
        isUncertain = true
    }

    /// `true` if the same statements may succeed in a new transaction: none of them was written.
    var mayRunAgain: Bool {
        guard !isUncertain else { return false }
        switch state {
        // A serialisation failure, a deadlock, and an idle transaction that the server ended.
        case "40001", "40P01", "25P03": return true
        // A prepared statement is missing or exists already: a pooler used another session.
        case "26000", "42P05": return true
        default: return losesConnection
        }
    }

    var losingConnection: StatementFailure {
        var failure = self
        failure.losesConnection = true
        return failure
    }

    /// Returns the failure for a transaction whose commit may or may not have taken place.
    func asUncertain(in database: String) -> StatementFailure {
        var failure = StatementFailure(
            .unreachable,
            "The connection to \(database) was lost during a commit, so it is not known whether that took place. It "
                + "is safe to try again. (\(error.message))"
        )
        failure.state = state
        failure.losesConnection = true
        failure.isUncertain = true
        return failure
    }
}

import Base

/// The current row of a statement; valid until the next step.
struct SQLiteRow: ColumnReader {
    private let statement: Statement
    private var column: Int32 = 0

    init(of statement: Statement) {
        self.statement = statement
    }

    mutating func optionalInteger() -> Int64? {
        defer { column += 1 }
        return statement.integer(at: column)
    }

    mutating func optionalText() -> String? {
        defer { column += 1 }
        return statement.text(at: column)
    }

    /// Reads a text that is often the same as in the row before.
    mutating func text(like former: String) -> String? {
        defer { column += 1 }
        return statement.text(at: column, like: former)
    }

    mutating func optionalBlob() -> [UInt8]? {
        defer { column += 1 }
        return statement.blob(at: column)
    }

    mutating func optionalFlag() -> Bool? {
        optionalInteger().map { $0 != 0 }
    }

    // Those of the protocol are generic, and the compiler does not specialise them for another module.

    mutating func integer() -> Int64 { optionalInteger() ?? 0 }

    mutating func text() -> String { optionalText() ?? "" }

    mutating func timestamp() -> Timestamp? { optionalInteger().map { Timestamp(milliseconds: $0) } }

    mutating func skip(_ count: Int32) {
        column += count
    }

    func damage(_ what: String) -> StoreError { StoreError(damagedRow: what) }
}

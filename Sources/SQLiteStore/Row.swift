import Store

/// The current row of a statement; valid until the next step.
struct Row: ColumnReader {
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

    mutating func optionalBlob() -> [UInt8]? {
        defer { column += 1 }
        return statement.blob(at: column)
    }

    mutating func optionalFlag() -> Bool? {
        optionalInteger().map { $0 != 0 }
    }

    func damage(_ what: String) -> StoreError { StoreError(damagedRow: what) }
}

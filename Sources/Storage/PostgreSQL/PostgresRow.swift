/// One row of a result, read from left to right.
struct PostgresRow: ColumnReader {
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

    /// Reads the next column, which the schema declares NOT NULL.
    mutating func flag() -> Bool { optionalFlag() ?? false }

    mutating func optionalText() -> String? {
        defer { column += 1 }
        return result.text(row: row, column: column)
    }

    mutating func optionalBlob() -> [UInt8]? {
        defer { column += 1 }
        return result.blob(row: row, column: column)
    }

    func damage(_ what: String) -> StatementFailure { StatementFailure(StoreError(damagedRow: what)) }
}

/// The current row of a statement, read from left to right; valid until the next step.
struct Row {
    private let statement: Statement
    private var column: Int32 = 0

    init(of statement: Statement) {
        self.statement = statement
    }

    mutating func optionalInteger() -> Int64? {
        defer { column += 1 }
        return statement.integer(at: column)
    }

    /// Reads the next column, which the schema declares NOT NULL.
    mutating func integer() -> Int64 {
        optionalInteger() ?? 0
    }

    mutating func optionalText() -> String? {
        defer { column += 1 }
        return statement.text(at: column)
    }

    /// Reads the next column, which the schema declares NOT NULL.
    mutating func text() -> String {
        optionalText() ?? ""
    }

    mutating func optionalBlob() -> [UInt8]? {
        defer { column += 1 }
        return statement.blob(at: column)
    }
}

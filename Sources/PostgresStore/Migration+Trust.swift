extension Migration {
    /// Columns and tables that keep tokens and states safe under faults.
    static let trust = Migration(statements: "")
}

extension Table {
    /// Returns the statement that creates the table, with `constraints` that name several columns. SQLite stores the
    /// rows in the order of their key unless they have numbers. `settings` are PostgreSQL's.
    func create(
        in dialect: SQLDialect,
        with constraints: [String] = [],
        settings: String = "",
        hasRowNumbers: Bool = false
    ) -> String {
        let end =
            switch dialect {
            case .sqlite: hasRowNumbers ? " STRICT" : " STRICT, WITHOUT ROWID"
            case .postgres: settings.isEmpty ? "" : " WITH (\(settings))"
            }
        let keyConstraint = key.count > 1 ? ["PRIMARY KEY (\(keyNames))"] : []
        let lines = columns.map { $0.definition(in: dialect) } + keyConstraint + constraints
        return "CREATE TABLE refresh_worker.\(name) (\(lines.joined(separator: ", ")))\(end);"
    }
}

extension Table.Column {
    /// PostgreSQL compares text by bytes (`COLLATE "C"`): the order of ids is the same on every server, and no upgrade
    /// of its C library can break an index.
    fileprivate func definition(in dialect: SQLDialect) -> String {
        let rest =
            switch (dialect, type) {
            case (.sqlite, .flag): "\(constraint) CHECK (\(name) IN (0, 1))"
            case (.postgres, .text): "COLLATE \"C\" \(constraint)"
            default: constraint
            }
        return "\(name) \(dialect.name(of: type)) \(rest)"
    }
}

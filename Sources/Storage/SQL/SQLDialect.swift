/// The database that a text of the schema is for.
enum SQLDialect: Sendable {
    case sqlite
    case postgres

    func name(of type: SQLType) -> String {
        switch (self, type) {
        case (.sqlite, .integer), (.sqlite, .flag): "INTEGER"
        case (.sqlite, .text): "TEXT"
        case (.sqlite, .bytes): "BLOB"
        case (.postgres, .integer): "bigint"
        case (.postgres, .text): "text"
        case (.postgres, .bytes): "bytea"
        case (.postgres, .flag): "boolean"
        }
    }
}

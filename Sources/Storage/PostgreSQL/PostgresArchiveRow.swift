import Base

extension Table {
    /// Returns the statement that adds rows with their keys, including those that the server would draw; a conflict
    /// ends the transaction.
    static func restore(_ name: String, into table: String, _ columns: [Column]) -> PostgresQuery {
        let names = columns.map(\.name).joined(separator: ", ")
        return PostgresQuery(
            name,
            "INSERT INTO \(table) (\(names)) OVERRIDING SYSTEM VALUE SELECT \(names) FROM \(rows(of: columns))"
        )
    }
}

/// The table and columns of each kind of record.
enum PostgresArchiveRow {
    /// A record's table, and the FROM clause that its columns are read from.
    private struct RecordTable {
        let name: String
        let key: String
        let columns: String
        var source: String?
    }

    private static let eventColumns = "seq, grant_id, at, kind, from_state, to_state, reason, generation"
    private static let noticeColumns = PostgresNoticeRow.columns + ", next_try_at, accepted_at, given_up_at"

    private static func table(of kind: ArchiveRecord.Kind) -> RecordTable {
        switch kind {
        case .user: RecordTable(name: "users", key: "user_id", columns: PostgresUserRow.columns)
        case .grant:
            RecordTable(name: "grants", key: "g.id", columns: PostgresGrantRow.columns, source: PostgresGrantRow.source)
        case .event: RecordTable(name: "grant_events", key: "seq", columns: eventColumns)
        case .session: RecordTable(name: "sessions", key: "id", columns: PostgresSessionRow.columns)
        case .clientHealth: RecordTable(name: "clients", key: "client_id", columns: "client_id, health")
        case .securityEvent: RecordTable(name: "security_events", key: "jti", columns: "jti, at")
        case .notice: RecordTable(name: "notices", key: "seq", columns: noticeColumns)
        }
    }

    /// Returns the text after SELECT: the columns and their source.
    private static func selection(_ columns: String, of table: RecordTable) -> String {
        "SELECT \(columns) FROM \(table.source ?? "refresh_worker.\(table.name)")"
    }

    static func count(_ kind: ArchiveRecord.Kind) -> PostgresQuery {
        PostgresQuery("count \(kind.rawValue)", "SELECT count(*) FROM refresh_worker.\(table(of: kind).name)")
    }

    static func firstPage(of kind: ArchiveRecord.Kind) -> PostgresQuery {
        let table = table(of: kind)
        let text = "\(selection(table.columns, of: table)) ORDER BY \(table.key) LIMIT $1"
        return PostgresQuery("first page of \(kind.rawValue)", text)
    }

    static func nextPage(of kind: ArchiveRecord.Kind) -> PostgresQuery {
        let table = table(of: kind)
        let text = "\(selection(table.columns, of: table)) WHERE \(table.key) > $2 ORDER BY \(table.key) LIMIT $1"
        return PostgresQuery("next page of \(kind.rawValue)", text)
    }

    static func last(of kind: ArchiveRecord.Kind) -> PostgresQuery {
        let table = table(of: kind)
        let text = "\(selection(table.key, of: table)) ORDER BY \(table.key) DESC LIMIT 1"
        return PostgresQuery("last \(kind.rawValue)", text)
    }

    /// The condition that all tables of records are empty.
    static let isEmpty = ArchiveRecord.Kind.allCases.map { kind in
        "NOT EXISTS (SELECT 1 FROM refresh_worker.\(table(of: kind).name))"
    }.joined(separator: " AND ")

    // MARK: Reading

    static func key(of kind: ArchiveRecord.Kind, from row: inout PostgresRow) -> ArchiveRecord.Key {
        switch kind {
        case .user, .clientHealth, .securityEvent: .text(row.text())
        case .grant, .event, .notice: .number(row.integer())
        case .session: .bytes(row.optionalBlob() ?? [])
        }
    }

    static func read(_ kind: ArchiveRecord.Kind, from row: inout PostgresRow) throws(StatementFailure) -> ArchiveRecord
    {
        switch kind {
        case .user: .user(try PostgresUserRow.read(&row))
        case .grant: ArchiveRecord(try PostgresGrantRow.read(&row))
        case .event: try event(&row)
        case .session: .session(try PostgresSessionRow.read(&row))
        case .clientHealth: .clientHealth(clientID: row.text(), row.optionalBlob() ?? [])
        case .securityEvent: .securityEvent(identifier: row.text(), at: Timestamp(milliseconds: row.integer()))
        case .notice:
            .notice(
                ArchivedNotice(
                    try PostgresNoticeRow.read(&row),
                    nextTryAt: row.timestamp(),
                    acceptedAt: row.timestamp(),
                    givenUpAt: row.timestamp()
                )
            )
        }
    }

    private static func event(_ row: inout PostgresRow) throws(StatementFailure) -> ArchiveRecord {
        let sequence = row.integer()
        let id = GrantID(rawValue: row.integer())
        return .event(sequence: sequence, try GrantEvent(of: id, from: &row))
    }
}

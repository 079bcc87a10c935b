import Base
import Store

extension Table {
    /// Returns the statement that adds rows with their keys, including those that the server would draw; a conflict
    /// ends the transaction.
    static func restore(_ name: String, into table: String, _ columns: [Column]) -> Query {
        let names = columns.map(\.name).joined(separator: ", ")
        return Query(
            name,
            "INSERT INTO \(table) (\(names)) OVERRIDING SYSTEM VALUE SELECT \(names) FROM \(rows(of: columns))"
        )
    }
}

/// The table and columns of each kind of record.
enum ArchiveRow {
    /// A record's table, and the FROM clause that its columns are read from.
    private struct RecordTable {
        let name: String
        let key: String
        let columns: String
        var source: String?
    }

    private static let eventColumns = "seq, grant_id, at, kind, from_state, to_state, reason, generation"
    private static let noticeColumns = NoticeRow.columns + ", next_try_at, accepted_at, given_up_at"

    private static func table(of kind: ArchiveRecord.Kind) -> RecordTable {
        switch kind {
        case .user: RecordTable(name: "users", key: "user_id", columns: UserRow.columns)
        case .grant: RecordTable(name: "grants", key: "g.id", columns: GrantRow.columns, source: GrantRow.source)
        case .event: RecordTable(name: "grant_events", key: "seq", columns: eventColumns)
        case .session: RecordTable(name: "sessions", key: "id", columns: SessionRow.columns)
        case .clientHealth: RecordTable(name: "clients", key: "client_id", columns: "client_id, health")
        case .securityEvent: RecordTable(name: "security_events", key: "jti", columns: "jti, at")
        case .notice: RecordTable(name: "notices", key: "seq", columns: noticeColumns)
        }
    }

    /// Returns the text after SELECT: the columns and their source.
    private static func selection(_ columns: String, of table: RecordTable) -> String {
        "SELECT \(columns) FROM \(table.source ?? "refresh_worker.\(table.name)")"
    }

    static func count(_ kind: ArchiveRecord.Kind) -> Query {
        Query("count \(kind.rawValue)", "SELECT count(*) FROM refresh_worker.\(table(of: kind).name)")
    }

    static func firstPage(of kind: ArchiveRecord.Kind) -> Query {
        let table = table(of: kind)
        let text = "\(selection(table.columns, of: table)) ORDER BY \(table.key) LIMIT $1"
        return Query("first page of \(kind.rawValue)", text)
    }

    static func nextPage(of kind: ArchiveRecord.Kind) -> Query {
        let table = table(of: kind)
        let text = "\(selection(table.columns, of: table)) WHERE \(table.key) > $2 ORDER BY \(table.key) LIMIT $1"
        return Query("next page of \(kind.rawValue)", text)
    }

    static func last(of kind: ArchiveRecord.Kind) -> Query {
        let table = table(of: kind)
        let text = "\(selection(table.key, of: table)) ORDER BY \(table.key) DESC LIMIT 1"
        return Query("last \(kind.rawValue)", text)
    }

    /// The condition that all tables of records are empty.
    static let isEmpty = ArchiveRecord.Kind.allCases.map { kind in
        "NOT EXISTS (SELECT 1 FROM refresh_worker.\(table(of: kind).name))"
    }.joined(separator: " AND ")

    // MARK: Reading

    static func key(of kind: ArchiveRecord.Kind, from row: inout Row) -> ArchiveRecord.Key {
        switch kind {
        case .user, .clientHealth, .securityEvent: .text(row.text())
        case .grant, .event, .notice: .number(row.integer())
        case .session: .bytes(row.optionalBlob() ?? [])
        }
    }

    static func read(_ kind: ArchiveRecord.Kind, from row: inout Row) throws(StatementFailure) -> ArchiveRecord {
        switch kind {
        case .user: .user(try UserRow.read(&row))
        case .grant: ArchiveRecord(try GrantRow.read(&row))
        case .event: try event(&row)
        case .session: .session(try SessionRow.read(&row))
        case .clientHealth: .clientHealth(clientID: row.text(), row.optionalBlob() ?? [])
        case .securityEvent: .securityEvent(identifier: row.text(), at: Timestamp(milliseconds: row.integer()))
        case .notice:
            .notice(
                ArchivedNotice(
                    try NoticeRow.read(&row),
                    nextTryAt: row.timestamp(),
                    acceptedAt: row.timestamp(),
                    givenUpAt: row.timestamp()
                )
            )
        }
    }

    private static func event(_ row: inout Row) throws(StatementFailure) -> ArchiveRecord {
        let sequence = row.integer()
        let id = GrantID(rawValue: row.integer())
        return .event(sequence: sequence, try GrantEvent(of: id, from: &row))
    }
}

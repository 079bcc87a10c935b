import Base

/// The table and columns of each kind of record.
enum SQLiteArchiveRow {
    private static let eventColumns = "seq, grant_id, at, kind, from_state, to_state, reason, generation"
    private static let noticeColumns = SQLiteNoticeRow.columns + ", next_try_at, accepted_at, given_up_at"

    private struct Table {
        let name: String
        let key: String
        let columns: String
        /// The FROM clause that the columns are read from, if it is more than the table.
        var source: String?
    }

    private static func table(_ kind: ArchiveRecord.Kind) -> Table {
        switch kind {
        case .user: Table(name: "users", key: "user_id", columns: SQLiteUserRow.columns)
        case .grant: Table(name: "grants", key: "id", columns: SQLiteGrantRow.columns, source: SQLiteGrantRow.source)
        case .event: Table(name: "grant_events", key: "seq", columns: eventColumns)
        case .session: Table(name: "sessions", key: "id", columns: SQLiteSessionRow.columns)
        case .clientHealth: Table(name: "clients", key: "client_id", columns: "client_id, health")
        case .securityEvent: Table(name: "security_events", key: "jti", columns: "jti, at")
        case .notice: Table(name: "notices", key: "seq", columns: noticeColumns)
        }
    }

    static func count(_ kind: ArchiveRecord.Kind) -> SQLiteQuery {
        SQLiteQuery("count \(kind.rawValue)", "SELECT count(*) FROM \(table(kind).name)")
    }

    static func firstPage(of kind: ArchiveRecord.Kind) -> SQLiteQuery {
        let table = table(kind)
        return SQLiteQuery(
            "first page of \(kind.rawValue)",
            "SELECT \(table.columns) FROM \(table.source ?? table.name) ORDER BY \(table.key) LIMIT ?1"
        )
    }

    static func nextPage(of kind: ArchiveRecord.Kind) -> SQLiteQuery {
        let table = table(kind)
        return SQLiteQuery(
            "next page of \(kind.rawValue)",
            "SELECT \(table.columns) FROM \(table.source ?? table.name) WHERE \(table.key) > ?2 ORDER BY \(table.key) "
                + "LIMIT ?1"
        )
    }

    static func last(of kind: ArchiveRecord.Kind) -> SQLiteQuery {
        let table = table(kind)
        return SQLiteQuery(
            "last \(kind.rawValue)",
            "SELECT \(table.key) FROM \(table.name) ORDER BY \(table.key) DESC LIMIT 1"
        )
    }

    static func insert(_ kind: ArchiveRecord.Kind) -> SQLiteQuery {
        switch kind {
        case .user: SQLiteUserRow.insert
        case .grant: SQLiteGrantRow.insert
        case .session: SQLiteSessionRow.insert
        case .event, .securityEvent, .notice: insert(into: table(kind), kind)
        // The time of the write only helps a person at the database's own shell.
        case .clientHealth:
            SQLiteQuery("add client health", "INSERT INTO clients (client_id, health, updated_at) VALUES (?, ?, 0)")
        }
    }

    private static func insert(into table: Table, _ kind: ArchiveRecord.Kind) -> SQLiteQuery {
        let placeholders = table.columns.split(separator: ",").map { _ in "?" }.joined(separator: ", ")
        return SQLiteQuery(
            "add \(kind.rawValue)",
            "INSERT INTO \(table.name) (\(table.columns)) VALUES (\(placeholders))"
        )
    }

    static func key(of kind: ArchiveRecord.Kind, from row: inout SQLiteRow) -> ArchiveRecord.Key {
        switch kind {
        case .user, .clientHealth, .securityEvent: .text(row.text())
        case .grant, .event, .notice: .number(row.integer())
        case .session: .bytes(row.optionalBlob() ?? [])
        }
    }

    static func read(_ kind: ArchiveRecord.Kind, from row: inout SQLiteRow) throws(StoreError) -> ArchiveRecord {
        switch kind {
        case .user: .user(try SQLiteUserRow.read(&row))
        case .grant: ArchiveRecord(try SQLiteGrantRow.read(&row))
        case .event: try event(&row)
        case .session: .session(try SQLiteSessionRow.read(&row))
        case .clientHealth: .clientHealth(clientID: row.text(), row.optionalBlob() ?? [])
        case .securityEvent: .securityEvent(identifier: row.text(), at: Timestamp(milliseconds: row.integer()))
        case .notice:
            .notice(
                ArchivedNotice(
                    try SQLiteNoticeRow.read(&row),
                    nextTryAt: row.timestamp(),
                    acceptedAt: row.timestamp(),
                    givenUpAt: row.timestamp()
                )
            )
        }
    }

    private static func event(_ row: inout SQLiteRow) throws(StoreError) -> ArchiveRecord {
        let sequence = row.integer()
        let id = GrantID(rawValue: row.integer())
        return .event(sequence: sequence, try GrantEvent(of: id, from: &row))
    }

    static func bind(_ record: ArchiveRecord, to statement: Statement) {
        switch record {
        case .user(let user): SQLiteUserRow.bindInsert(user, to: statement)
        case .grant(let grant): SQLiteGrantRow.bindInsert(grant, to: statement)
        case .session(let session): SQLiteSessionRow.bindInsert(session, to: statement)
        case .clientHealth(let clientID, let health):
            statement.bind(clientID)
            statement.bind(health)
        case .securityEvent(let identifier, let at):
            statement.bind(identifier)
            statement.bind(at)
        case .event(let sequence, let event):
            statement.bind(sequence)
            statement.bind(event.grant.rawValue)
            statement.bind(event.at)
            statement.bind(event.kind.rawValue)
            statement.bind(event.from?.rawValue)
            statement.bind(event.to.rawValue)
            statement.bind(event.reason.rawValue)
            statement.bind(event.generation)
        case .notice(let archived): bind(archived, to: statement)
        }
    }

    private static func bind(_ archived: ArchivedNotice, to statement: Statement) {
        let notice = archived.notice
        statement.bind(notice.sequence)
        statement.bind(Int64(notice.nonce))
        statement.bind(notice.userID)
        statement.bind(notice.at)
        SQLiteNoticeRow.bind(Notice.Columns(notice.content), to: statement)
        statement.bind(notice.pendingSince)
        statement.bind(Int64(notice.attempts))
        statement.bind(archived.nextTryAt)
        statement.bind(archived.acceptedAt)
        statement.bind(archived.givenUpAt)
    }
}

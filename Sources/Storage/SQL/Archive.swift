import Base

extension ArchiveRecord {
    /// The values of the record's row: what the checksum of a copy covers.
    var values: [SQLValue] {
        switch self {
        case .user(let user): User.table.values(of: user)
        case .grant(let grant): GrantColumn.read.map { $0.value(of: grant) }
        case .event(let sequence, let event): GrantEvent.table.values(of: (sequence, event))
        case .session(let session): Session.table.values(of: session)
        case .clientHealth(let clientID, let health): [.text(clientID), .bytes(health)]
        case .securityEvent(let identifier, let at): [.text(identifier), .time(at)]
        case .notice(let notice): ArchivedNotice.table.values(of: notice)
        }
    }

    fileprivate static let healths = Table<(clientID: String, health: [UInt8])>(
        "clients",
        [.init("client_id", .text) { .text($0.clientID) }, .init("health", .bytes) { .bytes($0.health) }]
    )
    fileprivate static let securityEvents = Table<(identifier: String, at: Timestamp)>(
        "security_events",
        [.init("jti", .text) { .text($0.identifier) }, .init("at", .integer) { .time($0.at) }]
    )

    fileprivate static func read(_ kind: Kind, from row: inout some SQLRow) throws(StoreError) -> ArchiveRecord {
        switch kind {
        case .user: .user(try User.read(&row))
        case .grant: ArchiveRecord(try Grant.read(&row))
        case .event: .event(sequence: row.integer(), try GrantEvent.read(&row))
        case .session: .session(try Session.read(&row))
        case .clientHealth: .clientHealth(clientID: row.text(), row.blob())
        case .securityEvent: .securityEvent(identifier: row.text(), at: row.time())
        case .notice: .notice(try ArchivedNotice.read(&row))
        }
    }
}

extension ArchiveRecord.Kind {
    /// The table of the records, without the tables that SQLite and PostgreSQL join to it for grants.
    fileprivate var table: (name: String, key: String, columns: String) {
        switch self {
        case .user: (User.table.name, "user_id", User.table.names)
        case .grant: (Grant.table.name, "id", "")
        case .event: (GrantEvent.table.name, "seq", GrantEvent.table.names)
        case .session: (Session.table.name, "id", Session.table.names)
        case .clientHealth: (ArchiveRecord.healths.name, "client_id", ArchiveRecord.healths.names)
        case .securityEvent: (ArchiveRecord.securityEvents.name, "jti", ArchiveRecord.securityEvents.names)
        case .notice: (ArchivedNotice.table.name, "seq", ArchivedNotice.table.names)
        }
    }

    fileprivate func key(from row: inout some SQLRow) -> ArchiveRecord.Key {
        switch self {
        case .user, .clientHealth, .securityEvent: .text(row.text())
        case .grant, .event, .notice: .number(row.integer())
        case .session: .bytes(row.blob())
        }
    }
}

extension ArchiveRecord.Key {
    fileprivate var value: SQLValue {
        switch self {
        case .number(let number): .integer(number)
        case .text(let text): .text(text)
        case .bytes(let bytes): .bytes(bytes)
        }
    }
}

extension SQLQuery {
    /// Notes a copy on its way into a database without records.
    fileprivate static let noteReceiving = SQLQuery(
        "note a copy on its way",
        """
        INSERT INTO refresh_worker.meta (key, value) SELECT $1, 'begun' WHERE \(
            ArchiveRecord.Kind.allCases.map { "NOT EXISTS (SELECT 1 FROM refresh_worker.\($0.table.name))" }
                .joined(separator: " AND ")
        )
        ON CONFLICT DO NOTHING
        """
    )
}

extension SQLStore {
    /// The key in `meta` of the note that this store receives a copy.
    private static var receivingKey: String { "receiving_copy" }
    /// The key in `meta` of the note that the database was moved.
    static var movedKey: String { "moved_to" }

    package func count(of kind: ArchiveRecord.Kind) async throws -> Int {
        let query = SQLQuery("count \(kind.rawValue)", "SELECT count(*) FROM refresh_worker.\(kind.table.name)")
        return try await first(SQLStatement(query), by: .wholeTable) { $0.count() } ?? 0
    }

    package func records(
        of kind: ArchiveRecord.Kind,
        after key: ArchiveRecord.Key?,
        atMost count: Int
    ) async throws -> [ArchiveRecord] {
        let (name, keyName, columns) = kind.table
        let selection =
            kind == .grant
            ? "SELECT \(Self.grantQueries.columns) FROM \(Self.grantQueries.source)"
            : "SELECT \(columns) FROM refresh_worker.\(name)"
        let order = "ORDER BY \(keyName) LIMIT $1"
        let statement =
            if let key {
                SQLStatement(
                    SQLQuery("next page of \(kind.rawValue)", "\(selection) WHERE \(keyName) > $2 \(order)"),
                    .limit(count),
                    key.value
                )
            } else {
                SQLStatement(SQLQuery("first page of \(kind.rawValue)", "\(selection) \(order)"), .limit(count))
            }
        return try await rows(statement, by: .scan) { row throws(StoreError) in
            try ArchiveRecord.read(kind, from: &row)
        }
    }

    package func lastKey(of kind: ArchiveRecord.Kind) async throws -> ArchiveRecord.Key? {
        let (name, key, _) = kind.table
        let query = SQLQuery(
            "last \(kind.rawValue)",
            "SELECT \(key) FROM refresh_worker.\(name) ORDER BY \(key) DESC LIMIT 1"
        )
        return try await first(SQLStatement(query), by: .scan) { kind.key(from: &$0) }
    }

    package var isReceiving: Bool {
        get async throws { try await note(Self.receivingKey) != nil }
    }

    package func beginReceiving() async throws {
        let note = try await change(
            [
                SQLStatement(.noteReceiving, .text(Self.receivingKey)),
                SQLStatement(.readMeta, .text(Self.receivingKey)),
            ],
            [.exclusive, .evenIfMoved, .repeatable]
        ) { $0.text() }.last
        guard note.count == 1 else {
            throw StoreError(.conflict, "\(databaseName) is not empty, and a copy goes only into an empty one.")
        }
    }

    package func receive(_ records: [ArchiveRecord]) async throws {
        try await change(Self.restore(records), [.exclusive, .evenIfMoved])
    }

    private static func restore(_ records: [ArchiveRecord]) -> [SQLStatement] {
        func compact<Element>(_ pick: (ArchiveRecord) -> Element?) -> [Element] { records.compactMap(pick) }
        return restore(compact { if case .user(let user) = $0 { user } else { nil } }, into: User.table)
            + restore(compact { if case .grant(let grant) = $0 { grant } else { nil } })
            + restore(
                compact { if case .event(let sequence, let event) = $0 { (sequence, event) } else { nil } },
                into: GrantEvent.table
            )
            + restore(compact { if case .session(let session) = $0 { session } else { nil } }, into: Session.table)
            + restore(
                compact { if case .clientHealth(let id, let health) = $0 { (id, health) } else { nil } },
                into: ArchiveRecord.healths
            )
            + restore(
                compact { if case .securityEvent(let id, let at) = $0 { (id, at) } else { nil } },
                into: ArchiveRecord.securityEvents
            )
            + restore(compact { if case .notice(let notice) = $0 { notice } else { nil } }, into: ArchivedNotice.table)
    }

    package func endReceiving() async throws {
        try await change(
            Self.afterCopy + [Self.receivingKey, Self.movedKey].map { SQLStatement(.deleteMeta, .text($0)) },
            [.exclusive, .evenIfMoved, .repeatable]
        )
    }

    package var movedTo: String? {
        get async throws { try await note(Self.movedKey) }
    }

    package func remainingLease() async throws -> Duration? {
        let time = try await leaseTime()
        let last = try await first(SQLStatement(Self.lastLease, .text(time.epoch)), by: .wholeTable) {
            $0.optionalInteger()
        }
        guard let last = last ?? nil, last > time.instant.milliseconds else { return nil }
        return .milliseconds(last - time.instant.milliseconds)
    }

    package func markMoved(to location: String?) async throws {
        let mark =
            if let location {
                SQLStatement(.writeMeta, .text(Self.movedKey), .text(location))
            } else {
                SQLStatement(.deleteMeta, .text(Self.movedKey))
            }
        try await change(Self.beforeMove + [mark], [.long, .evenIfMoved, .repeatable])
    }
}

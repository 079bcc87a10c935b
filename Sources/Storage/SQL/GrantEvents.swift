import Base

extension GrantEvent {
    static let table = Table<GrantEvent>(
        "grant_events",
        key: ["grant_id", "number"],
        [
            .init("grant_id", .integer, "NOT NULL REFERENCES refresh_worker.grants (id)") {
                .integer($0.grant.rawValue)
            },
            // Counts the events of the grant, in their order. All writers of events exclude each other.
            .init("number", .integer, "NOT NULL"),
            .init("at", .integer, "NOT NULL") { .time($0.at) },
            .init("kind", .text, "NOT NULL") { .text($0.kind.rawValue) },
            .init("from_state", .text) { .text($0.from?.rawValue) },
            .init("to_state", .text, "NOT NULL") { .text($0.to.rawValue) },
            .init("reason", .text, "NOT NULL") { .text($0.reason.rawValue) },
            .init("generation", .integer, "NOT NULL") { .integer($0.generation) },
            .init("consented_at", .integer) { .time($0.consentedAt) },
        ]
    )
    /// The columns of a new event. The statement that adds it gives it its number.
    static let added = table.without("number")

    static func read(_ row: inout some SQLRow) throws(StoreError) -> GrantEvent {
        let id = GrantID(rawValue: row.integer())
        let at = row.timestamp()
        let kind = Kind(rawValue: row.text())
        let former = row.optionalText()
        let next = row.text()
        guard let at, let kind else { throw StoreError(damagedRow: "An event of grant \(id)") }
        return GrantEvent(
            grant: id,
            at: at,
            kind: kind,
            from: try former.map { text throws(StoreError) in try GrantState(stored: text, of: id) },
            to: try GrantState(stored: next, of: id),
            reason: GrantReason(rawValue: row.text()),
            generation: Int64(row.count()),
            consentedAt: row.timestamp()
        )
    }
}

extension SQLQuery {
    static let eventsOfGrant = GrantEvent.added.select(
        "events of grant",
        "WHERE grant_id = $1 ORDER BY number DESC LIMIT $2"
    )
    static let lastConnection = SQLQuery(
        "last connection",
        sql: """
            SELECT at FROM refresh_worker.grant_events WHERE grant_id = $1 AND kind = '\(GrantEvent.Kind.connected.rawValue)'
            ORDER BY number DESC LIMIT 1
            """
    )
    /// The number of the last event of a grant, 0 without one.
    private static func lastEvent(ofGrant id: String) -> String {
        "coalesce((SELECT max(number) FROM refresh_worker.grant_events WHERE grant_id = \(id)), 0)"
    }
    static let insertEvent = SQLQuery(
        "insert event",
        sql: """
            INSERT INTO refresh_worker.grant_events (\(GrantEvent.added.names), number)
            SELECT \(GrantEvent.added.placeholders), \(lastEvent(ofGrant: "$1")) + 1
            """
    )
    /// Adds the events that the arrays of PostgreSQL hold, in their order.
    static let insertEvents = SQLQuery(
        "insert events",
        sql: """
            INSERT INTO refresh_worker.grant_events (\(GrantEvent.added.names), number)
            SELECT \(GrantEvent.added.names), \(lastEvent(ofGrant: "new.grant_id"))
                + row_number() OVER (PARTITION BY grant_id ORDER BY position)
            FROM \(GrantEvent.added.newArrays) WITH ORDINALITY AS new (\(GrantEvent.added.names), position)
            """
    )

    /// Removes all but the last events of a grant, or of several, and keeps its last connection, with which security
    /// events are compared.
    static func trimEvents(ofGrant id: String, from source: String = "") -> SQLQuery {
        let connected = "'\(GrantEvent.Kind.connected.rawValue)'"
        return SQLQuery(
            "trim events",
            sql: """
                DELETE FROM refresh_worker.grant_events AS old\(source) WHERE old.grant_id = \(id)
                    AND old.number <= (SELECT number FROM refresh_worker.grant_events WHERE grant_id = \(id)
                        ORDER BY number DESC LIMIT 1 OFFSET \(Retention.eventsPerGrant))
                    AND (old.kind <> \(connected) OR EXISTS (
                        SELECT 1 FROM refresh_worker.grant_events AS later
                        WHERE later.grant_id = \(id) AND later.number > old.number AND later.kind = \(connected)))
                """
        )
    }
}

extension SQLStore {
    package func events(of id: GrantID, atMost count: Int) async throws -> [GrantEvent] {
        try await rows(SQLStatement(.eventsOfGrant, .integer(id.rawValue), .limit(count)), by: .single, GrantEvent.read)
    }
}

extension SQLTransaction {
    func lastConnection(of id: GrantID) throws -> Timestamp? {
        try first(SQLStatement(.lastConnection, .integer(id.rawValue))) { $0.time() }
    }
}

import Base

extension GrantEvent {
    static let table = Table<GrantEvent>(
        "grant_events",
        [
            .init("seq", .sequence(neverReused: false)),
            .init("grant_id", .integer, "NOT NULL REFERENCES refresh_worker.grants (id)") {
                .integer($0.grant.rawValue)
            },
            .init("at", .integer, "NOT NULL") { .time($0.at) },
            .init("kind", .text, "NOT NULL") { .text($0.kind.rawValue) },
            .init("from_state", .text) { .text($0.from?.rawValue) },
            .init("to_state", .text, "NOT NULL") { .text($0.to.rawValue) },
            .init("reason", .text, "NOT NULL") { .text($0.reason.rawValue) },
            .init("generation", .integer, "NOT NULL") { .integer($0.generation) },
        ]
    )
    /// The columns of a new event.
    static let added = table.without("seq")

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
            generation: row.integer()
        )
    }
}

extension GrantState {
    init(stored text: String, of id: GrantID) throws(StoreError) {
        guard let state = GrantState(rawValue: text) else { throw StoreError(damagedRow: "The state of grant \(id)") }
        self = state
    }
}

extension SQLQuery {
    static let eventsOfGrant = GrantEvent.added.select(
        "events of grant",
        "WHERE grant_id = $1 ORDER BY seq DESC LIMIT $2"
    )
    static let lastConnection = SQLQuery(
        "last connection",
        """
        SELECT at FROM refresh_worker.grant_events WHERE grant_id = $1 AND kind = '\(GrantEvent.Kind.connected.rawValue)'
        ORDER BY seq DESC LIMIT 1
        """
    )

    /// Removes all but the last events of a grant, or of several, and keeps its last connection, with which security
    /// events are compared.
    static func trimEvents(ofGrant id: String, from source: String = "") -> SQLQuery {
        let connected = "'\(GrantEvent.Kind.connected.rawValue)'"
        return SQLQuery(
            "trim events",
            """
            DELETE FROM refresh_worker.grant_events AS old\(source) WHERE old.grant_id = \(id)
                AND old.seq <= (SELECT seq FROM refresh_worker.grant_events WHERE grant_id = \(id)
                    ORDER BY seq DESC LIMIT 1 OFFSET \(Retention.eventsPerGrant))
                AND (old.kind <> \(connected) OR EXISTS (
                    SELECT 1 FROM refresh_worker.grant_events AS later
                    WHERE later.grant_id = \(id) AND later.seq > old.seq AND later.kind = \(connected)))
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

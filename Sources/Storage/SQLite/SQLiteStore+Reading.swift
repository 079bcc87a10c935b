extension SQLiteQuery {
    static let grantByID = SQLiteQuery(
        "grant by id",
        "SELECT \(SQLiteGrantRow.columns) FROM \(SQLiteGrantRow.source) WHERE id = ?"
    )
    static let grantOfUser = SQLiteQuery(
        "grant of user",
        "SELECT \(SQLiteGrantRow.columns) FROM \(SQLiteGrantRow.source) WHERE user_id = ?"
    )

    static let pageOfGrants = SQLiteQuery(
        "page of grants",
        "SELECT \(SQLiteGrantRow.columns) FROM \(SQLiteGrantRow.source) WHERE id > ?1 ORDER BY id LIMIT ?2"
    )
    static let pageOfState = SQLiteQuery(
        "page of grants in a state",
        "SELECT \(SQLiteGrantRow.columns) FROM \(SQLiteGrantRow.source) WHERE id > ?1 AND state = ?3 ORDER BY id LIMIT ?2"
    )
    static let eventsOfGrant = SQLiteQuery(
        "events of grant",
        """
        SELECT at, kind, from_state, to_state, reason, generation FROM grant_events
        WHERE grant_id = ? ORDER BY seq DESC LIMIT ?
        """
    )
    static let allHealth = SQLiteQuery("health of clients", "SELECT client_id, health FROM clients")
}

extension SQLiteStore {
    package func grant(_ id: GrantID) async throws -> Grant? {
        try await reader.run { connection throws(StoreError) in
            try connection.first(.grantByID, bind: { $0.bind(id.rawValue) }, read: SQLiteGrantRow.read)
        }
    }

    package func grant(ofUser userID: String) async throws -> Grant? {
        try await reader.run { connection throws(StoreError) in
            try connection.first(.grantOfUser, bind: { $0.bind(userID) }, read: SQLiteGrantRow.read)
        }
    }

    package func grants(after id: GrantID?, in state: GrantState?, atMost count: Int) async throws -> [Grant] {
        try await scanner.run { connection throws(StoreError) in
            try connection.rows(
                state == nil ? .pageOfGrants : .pageOfState,
                bind: { statement in
                    statement.bind(id?.rawValue ?? -1)
                    statement.bind(Int64(max(0, count)))
                    if let state { statement.bind(state.rawValue) }
                },
                read: SQLiteGrantRow.read
            )
        }
    }

    package func events(of id: GrantID, atMost count: Int) async throws -> [GrantEvent] {
        try await reader.run { connection throws(StoreError) in
            try connection.rows(
                .eventsOfGrant,
                bind: { statement in
                    statement.bind(id.rawValue)
                    statement.bind(Int64(max(0, count)))
                },
                read: { (row: inout SQLiteRow) throws(StoreError) in try GrantEvent(of: id, from: &row) }
            )
        }
    }

    package func clientHealth() async throws -> [String: [UInt8]] {
        let rows = try await reader.run { connection throws(StoreError) in
            try connection.rows(.allHealth) { (row: inout SQLiteRow) throws(StoreError) in
                (clientID: row.text(), health: row.optionalBlob() ?? [])
            }
        }
        return rows.reduce(into: [:]) { $0[$1.clientID] = $1.health }
    }
}

extension GrantEvent {
    /// Reads the columns from `at` to `generation`.
    init(of id: GrantID, from row: inout SQLiteRow) throws(StoreError) {
        let at = row.timestamp()
        let kind = Kind(rawValue: row.text())
        let former = row.optionalText()
        let next = row.text()
        guard let at, let kind else {
            throw StoreError(damagedRow: "An event of grant \(id)")
        }
        var from: GrantState?
        if let former { from = try SQLiteGrantRow.state(former, of: id) }
        self.init(
            grant: id,
            at: at,
            kind: kind,
            from: from,
            to: try SQLiteGrantRow.state(next, of: id),
            reason: GrantReason(rawValue: row.text()),
            generation: row.integer()
        )
    }
}

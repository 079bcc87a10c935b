extension PostgresQuery {
    private static let grants = "SELECT \(PostgresGrantRow.columns) FROM \(PostgresGrantRow.source)"

    fileprivate static let grantByID = PostgresQuery("grant by id", "\(grants) WHERE g.id = $1")
    fileprivate static let grantOfUser = PostgresQuery("grant of user", "\(grants) WHERE g.user_id = $1")
    fileprivate static let pageOfGrants = PostgresQuery(
        "page of grants",
        "\(grants) WHERE g.id > $1 ORDER BY g.id LIMIT $2"
    )
    fileprivate static let pageOfState = PostgresQuery(
        "page of grants in a state",
        "\(grants) WHERE g.id > $1 AND g.state = $3 ORDER BY g.id LIMIT $2"
    )
    fileprivate static let eventsOfGrant = PostgresQuery(
        "events of grant",
        """
        SELECT at, kind, from_state, to_state, reason, generation FROM refresh_worker.grant_events
        WHERE grant_id = $1 ORDER BY seq DESC LIMIT $2
        """
    )
    /// No user id is empty, so the empty text is before all of them.
    fileprivate static let pageOfUsers = PostgresQuery(
        "page of users",
        "SELECT \(PostgresUserRow.columns) FROM refresh_worker.users WHERE user_id > $1 ORDER BY user_id LIMIT $2"
    )
    fileprivate static let allHealth = PostgresQuery(
        "health of clients",
        "SELECT client_id, health FROM refresh_worker.clients"
    )
    fileprivate static let acceptsWrites = PostgresQuery(
        "checking that writes are accepted",
        "SELECT NOT current_setting('transaction_read_only')::boolean FROM refresh_worker.schema_version"
    )
    /// Conflicts with every lock that would keep results from being stored, and writes nothing.
    fileprivate static let lockTables = PostgresQuery(
        "checking that tables are not locked",
        """
        LOCK TABLE refresh_worker.grants, refresh_worker.grant_schedule, refresh_worker.grant_events,
            refresh_worker.grant_counts, refresh_worker.clients, refresh_worker.client_successes IN ROW EXCLUSIVE MODE
        """
    )
}

extension PostgresStore {
    package func grant(_ id: GrantID) async throws -> Grant? {
        try await reader.first(.grantByID, bind: { $0.bind(id.rawValue) }, read: PostgresGrantRow.read)
    }

    package func grant(ofUser userID: String) async throws -> Grant? {
        try await reader.first(.grantOfUser, bind: { $0.bind(userID) }, read: PostgresGrantRow.read)
    }

    package func grants(after id: GrantID?, in state: GrantState?, atMost count: Int) async throws -> [Grant] {
        try await scanner.rows(
            state == nil ? .pageOfGrants : .pageOfState,
            bind: { parameters in
                parameters.bind(id?.rawValue ?? -1)
                parameters.bind(Int64(max(0, count)))
                if let state { parameters.bind(state.rawValue) }
            },
            read: PostgresGrantRow.read
        )
    }

    package func events(of id: GrantID, atMost count: Int) async throws -> [GrantEvent] {
        try await reader.rows(
            .eventsOfGrant,
            bind: { parameters in
                parameters.bind(id.rawValue)
                parameters.bind(Int64(max(0, count)))
            },
            read: { (row: inout PostgresRow) throws(StatementFailure) in try GrantEvent(of: id, from: &row) }
        )
    }

    package func user(_ id: String) async throws -> User? {
        try await reader.first(.userByID, bind: { $0.bind(id) }, read: PostgresUserRow.read)
    }

    package func users(after id: String?, atMost count: Int) async throws -> [User] {
        try await scanner.rows(
            .pageOfUsers,
            bind: { parameters in
                parameters.bind(id ?? "")
                parameters.bind(Int64(max(0, count)))
            },
            read: PostgresUserRow.read
        )
    }

    package func session(_ id: SessionID) async throws -> Session? {
        try await reader.first(.sessionByID, bind: { $0.bind(id.bytes) }, read: PostgresSessionRow.read)
    }

    /// The time that the check may take: a caller of `/readyz` waits for it.
    private static let checkTimeout: Duration = .milliseconds(2_500)

    /// Takes the locks of a transaction that stores results, and writes nothing, since it is called every few seconds.
    package func checkUsable() async throws {
        do {
            try await checkAcceptsWrites()
        } catch let error as StoreError where error.code == .readOnly {
            // A session that began while the server was read-only stays read-only; it is closed now, and a new one
            // shows the current state.
            try await checkAcceptsWrites()
        }
    }

    private func checkAcceptsWrites() async throws {
        try await checking.run(timeout: Self.checkTimeout) { [self] connection, deadline throws(StatementFailure) in
            var batch = StatementBatch(until: deadline)
            let position = batch.add(.acceptsWrites)
            batch.addWriterLock()
            addUseCheck(to: &batch, on: connection)
            batch.add(.lockTables)
            batch.add(.rollback)
            let acceptsWrites: Bool?
            do throws(StatementFailure) {
                acceptsWrites = try run(batch, on: connection, until: deadline)[position]
                    .first { (row: inout PostgresRow) throws(StatementFailure) in row.flag() }
            } catch {
                throw rollBack(after: error, on: connection, until: deadline)
            }
            guard acceptsWrites == true else {
                // The server's own code for a refused write.
                let state = "25006"
                let error = StoreError(
                    state: state,
                    detail: "it is read-only",
                    database: connection.database,
                    during: PostgresQuery.acceptsWrites.name
                )
                throw StatementFailure(error, state: state)
            }
        }
    }

    package func clientHealth() async throws -> [String: [UInt8]] {
        let rows = try await reader.rows(.allHealth) { (row: inout PostgresRow) throws(StatementFailure) in
            (clientID: row.text(), health: row.optionalBlob() ?? [])
        }
        return rows.reduce(into: [:]) { $0[$1.clientID] = $1.health }
    }
}

extension PostgresConnectionQueue {
    /// Runs one query that changes nothing.
    func rows<Element: Sendable>(
        _ query: PostgresQuery,
        timeout: Duration? = nil,
        bind: @escaping @Sendable (inout Parameters) -> Void = { _ in },
        read: @escaping @Sendable (inout PostgresRow) throws(StatementFailure) -> Element
    ) async throws(StoreError) -> [Element] {
        try await run(timeout: timeout) { connection, deadline throws(StatementFailure) in
            var batch = StatementBatch(queryUntil: deadline)
            let position = batch.add(query, bind: bind)
            return try connection.run(batch, until: deadline)[position].rows(read)
        }
    }

    /// Runs one query that returns at most one row.
    func first<Element: Sendable>(
        _ query: PostgresQuery,
        bind: @escaping @Sendable (inout Parameters) -> Void = { _ in },
        read: @escaping @Sendable (inout PostgresRow) throws(StatementFailure) -> Element
    ) async throws(StoreError) -> Element? {
        try await rows(query, bind: bind, read: read).first
    }
}

extension GrantEvent {
    /// Reads the columns from `at` to `generation`.
    init(of id: GrantID, from row: inout PostgresRow) throws(StatementFailure) {
        let at = row.timestamp()
        let kind = Kind(rawValue: row.text())
        let former = row.optionalText()
        let next = row.text()
        guard let at, let kind else {
            throw StatementFailure(StoreError(damagedRow: "An event of grant \(id)"))
        }
        var from: GrantState?
        if let former { from = try PostgresGrantRow.state(former, of: id) }
        self.init(
            grant: id,
            at: at,
            kind: kind,
            from: from,
            to: try PostgresGrantRow.state(next, of: id),
            reason: GrantReason(rawValue: row.text()),
            generation: row.integer()
        )
    }
}

import Base

/// The statements that read grants, for one database, and either with locks or without.
struct GrantQueries: Sendable {
    /// The columns that ``GrantRowReader`` reads, and the tables that they are in.
    let columns: String
    let source: String

    let byID: SQLQuery
    let ofConnection: SQLQuery
    let ofUser: SQLQuery
    let page: SQLQuery
    let pageOfState: SQLQuery
    let ofAccount: GrantSearch
    let sameAccount: GrantSearch
    let sameEmail: GrantSearch
    let ofEmail: SQLQuery
    let byPrefixMark: GrantSearch
    let byDigestMark: GrantSearch

    /// `lock` is the end of a statement that keeps the grants as they are.
    init(columns: String, source: String, lock: String = "") {
        self.columns = columns
        self.source = source
        let select = { (name: String, rest: String) in
            SQLQuery(name, sql: "SELECT \(columns) FROM \(source) WHERE \(rest)\(lock)")
        }
        let search = { (name: String, condition: String, count: Int) in
            GrantSearch(
                grants: select(name, "\(condition) ORDER BY id"),
                ids: SQLQuery("ids of \(name)", sql: "SELECT id FROM refresh_worker.grants WHERE \(condition)"),
                grantsOfIDs: select("found \(name)", "id = ANY($\(count + 1)) AND \(condition) ORDER BY id")
            )
        }
        let isOfUser = "reason <> '\(GrantReason.userDeleted)'"
        let hasToken = "refresh_token IS NOT NULL"
        byID = select("grant by id", "id = $1")
        ofConnection = select("grant of a connection", "user_id = $1 AND connection = $2")
        ofUser = select("grants of a user", "user_id = $1 ORDER BY id")
        page = select("page of grants", "id > $1 ORDER BY id LIMIT $2")
        pageOfState = select("page of grants in a state", "id > $1 AND state = $3 ORDER BY id LIMIT $2")
        ofAccount = search("grants of a Google account", "google_user_id = $1 AND \(isOfUser)", 1)
        sameAccount = search(
            "grants of the same Google account",
            "google_user_id = $1 AND id <> $2 AND \(hasToken)",
            2
        )
        // A grant that is known to belong to another account than $1 does not count.
        sameEmail = search(
            "grants of the same e-mail",
            """
            email IS NOT NULL AND lower(email) = lower($3 COLLATE "C") AND id <> $2 AND \(hasToken)
                AND ($1 IS NULL OR google_user_id IS NULL)
            """,
            3
        )
        // Not with OR: PostgreSQL would then read all grants.
        ofEmail = select(
            "grants of an e-mail",
            """
            id IN (
                SELECT id FROM refresh_worker.grants
                WHERE email IS NOT NULL AND lower(email) = lower($1 COLLATE "C")
                UNION ALL
                SELECT owned.id FROM refresh_worker.users AS owner
                JOIN refresh_worker.grants AS owned ON owned.user_id = owner.user_id
                WHERE owner.email IS NOT NULL AND lower(owner.email) = lower($1 COLLATE "C")
            ) ORDER BY id LIMIT $2
            """
        )
        byPrefixMark = search("grants by prefix mark", "refresh_prefix_mark = $1 AND \(isOfUser)", 1)
        byDigestMark = search("grants by digest mark", "refresh_digest_mark = $1 AND \(isOfUser)", 1)
    }
}

/// The statements that find grants by something else than their id, sorted by id.
///
/// A statement that locks rows is divided: tables that are spread over several servers cannot be searched and locked in
/// one (https://docs.citusdata.com/en/stable/develop/reference_workarounds.html). So PostgreSQL finds the ids without a
/// lock, and then reads the grants by their ids with a lock, and with the condition again.
struct GrantSearch: Sendable {
    /// The search in one statement, for a store without locks of rows.
    let grants: SQLQuery
    let ids: SQLQuery
    /// It takes the ids after the parameters of the search.
    let grantsOfIDs: SQLQuery
}

extension SQLQuery {
    /// Gives the grants of the user `$1` to the user `$2`.
    static let moveGrants = SQLQuery(
        "move grants",
        sql: "UPDATE refresh_worker.grants SET user_id = $2, \(Grant.increment) WHERE user_id = $1"
    )

    static let issuedTokens = SQLQuery(
        "tokens issued to an account",
        sql: """
            SELECT issued_tokens FROM refresh_worker.grants WHERE google_user_id = $1 AND issued_tokens IS NOT NULL
            UNION ALL
            SELECT issued_tokens FROM refresh_worker.grants WHERE email IS NOT NULL AND lower(email) = lower($2 COLLATE "C")
                AND google_user_id IS NULL AND issued_tokens IS NOT NULL
            UNION ALL
            SELECT issued_tokens FROM refresh_worker.grants WHERE former_tokens_until > $3
            """
    )

    static let namedConnection = SQLQuery(
        "named connection",
        sql: """
            SELECT 1 FROM refresh_worker.grants /* INDEXED BY grants_by_connection */
            WHERE connection <> 'default' LIMIT 1
            """
    )

    /// The health of each client.
    static let clients = Table<[SQLValue]>(
        "clients",
        [.init("client_id", .text, "PRIMARY KEY"), .init("health", .bytes, "NOT NULL")]
    )
    static let allHealth = clients.select("health of clients", "")
    static let setHealth = clients.put("set client health")
    /// Grants in each state: counting ten million at each scrape of the metrics would take a second.
    static let grantCounts = Table<[SQLValue]>(
        "grant_counts",
        [.init("state", .text, "PRIMARY KEY"), .init("grants", .integer, "NOT NULL")]
    )
}

extension SQLStore {
    package func grant(_ id: GrantID) async throws -> Grant? {
        try await first(SQLStatement(Self.grantQueries.byID, .integer(id.rawValue)), Grant.read)
    }

    package func grant(ofUser userID: String, connection: ConnectionID) async throws -> Grant? {
        let query = SQLStatement(Self.grantQueries.ofConnection, .text(userID), .text(connection.description))
        return try await first(query, Grant.read)
    }

    package func grants(ofUser userID: String) async throws -> [Grant] {
        let grants = try await rows(SQLStatement(Self.grantQueries.ofUser, .text(userID)), by: .single, Grant.read)
        return grants.sortedByConnection
    }

    package var hasOtherConnections: Bool {
        get async throws { try await first(SQLStatement(.namedConnection)) { _ in true } ?? false }
    }

    package func grants(after id: GrantID?, in state: GrantState?, atMost count: Int) async throws -> [Grant] {
        let page: [SQLValue] = [.integer(id?.rawValue ?? -1), .limit(count)]
        let statement =
            if let state {
                SQLStatement(Self.grantQueries.pageOfState, page + [.text(state.rawValue)])
            } else {
                SQLStatement(Self.grantQueries.page, page)
            }
        return try await rows(statement, by: .scan, Grant.read)
    }

    package func grants(ofEmail email: String, atMost count: Int) async throws -> [Grant] {
        let statement = SQLStatement(Self.grantQueries.ofEmail, .text(email), .limit(count))
        return try await rows(statement, by: .scan, Grant.read)
    }

    package func clientHealth() async throws -> [String: [UInt8]] {
        let rows = try await rows(SQLStatement(.allHealth), by: .single) { row in
            (clientID: row.text(), health: row.blob())
        }
        return rows.reduce(into: [:]) { $0[$1.clientID] = $1.health }
    }
}

extension SQLTransaction {
    func grants(ofUser userID: String) throws -> [Grant] {
        try grants(SQLStatement(Self.grantQueries.ofUser, .text(userID))).sortedByConnection
    }

    func grants(withTokenOf account: Grant.Owner, except id: GrantID?) throws -> [Grant] {
        // No id is negative.
        let values: [SQLValue] = [.text(account.googleUserID), .integer(id?.rawValue ?? -1)]
        var found: [Grant] = []
        if account.googleUserID != nil { found += try grants(found: Self.grantQueries.sameAccount, by: values) }
        if let email = account.email {
            found += try grants(found: Self.grantQueries.sameEmail, by: values + [.text(email)])
        }
        return found.sorted { $0.id < $1.id }
    }

    func grants(ofGoogleUser googleUserID: String) throws -> [Grant] {
        try grants(found: Self.grantQueries.ofAccount, by: [.text(googleUserID)])
    }

    func grants(withRefreshTokenMark mark: TokenMark) throws -> [Grant] {
        let search =
            switch mark {
            case .prefix: Self.grantQueries.byPrefixMark
            case .digest: Self.grantQueries.byDigestMark
            }
        return try grants(found: search, by: [.bytes(mark.bytes)])
    }

    func issuedTokens(toAccount owner: Grant.Owner, at now: Timestamp) throws -> [IssuedTokens] {
        try rows(SQLStatement(.issuedTokens, .text(owner.googleUserID), .text(owner.email), .time(now))) { row in
            IssuedTokens(bytes: row.optionalBlob())
        }
    }
}

extension [Grant] {
    /// The grants of one user: the default connection first, then in the order in which they were added.
    var sortedByConnection: [Grant] {
        sorted { left, right in
            if left.connection.isDefault != right.connection.isDefault { return left.connection.isDefault }
            return (left.createdAt, left.connection) < (right.createdAt, right.connection)
        }
    }
}

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

extension GrantState {
    init(stored text: String, of id: GrantID) throws(StoreError) {
        guard let state = GrantState(rawValue: text) else { throw StoreError(damagedRow: "The state of grant \(id)") }
        self = state
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

import Base

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

extension GrantState {
    init(stored text: String, of id: GrantID) throws(StoreError) {
        guard let state = GrantState(rawValue: text) else { throw StoreError(damagedRow: "The state of grant \(id)") }
        self = state
    }
}

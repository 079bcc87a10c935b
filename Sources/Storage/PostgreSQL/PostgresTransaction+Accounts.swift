import Base

extension PostgresQuery {
    private static let isOfUser = "g.reason <> '\(GrantReason.userDeleted)'"

    fileprivate static let grantsOfAccount = lockedGrants(
        "grants of a Google account",
        where: "g.google_user_id = $1 AND \(isOfUser)"
    )
    fileprivate static let issuedTokens = PostgresQuery(
        "tokens issued to an account",
        """
        SELECT issued_tokens FROM refresh_worker.grants WHERE google_user_id = $1 AND issued_tokens IS NOT NULL
        UNION ALL
        SELECT issued_tokens FROM refresh_worker.grants WHERE email IS NOT NULL AND lower(email) = lower($2 COLLATE "C")
            AND google_user_id IS NULL AND issued_tokens IS NOT NULL
        UNION ALL
        SELECT issued_tokens FROM refresh_worker.grants WHERE former_tokens_until > $3
        """
    )
    fileprivate static let grantsByPrefixMark = lockedGrants(
        "grants by prefix mark",
        where: "g.refresh_prefix_mark = $1 AND \(isOfUser)"
    )
    fileprivate static let grantsByDigestMark = lockedGrants(
        "grants by digest mark",
        where: "g.refresh_digest_mark = $1 AND \(isOfUser)"
    )
    fileprivate static let lastConnection = PostgresQuery(
        "last connection",
        """
        SELECT at FROM refresh_worker.grant_events WHERE grant_id = $1 AND kind = $2
        ORDER BY seq DESC LIMIT 1
        """
    )
    static let userByID = PostgresQuery(
        "user by id",
        "SELECT \(PostgresUserRow.columns) FROM refresh_worker.users WHERE user_id = $1"
    )
    fileprivate static let userOfAccount = PostgresQuery(
        "user of a Google account",
        "SELECT \(PostgresUserRow.columns) FROM refresh_worker.users WHERE google_user_id = $1"
    )
    fileprivate static let usersByEmail = PostgresQuery(
        "users by e-mail",
        """
        SELECT \(PostgresUserRow.columns) FROM refresh_worker.users
        WHERE email IS NOT NULL AND lower(email) = lower($1 COLLATE "C") ORDER BY user_id
        """
    )
    static let sessionByID = PostgresQuery(
        "session by id",
        "SELECT \(PostgresSessionRow.columns) FROM refresh_worker.sessions WHERE id = $1"
    )
    fileprivate static let endSession = PostgresQuery(
        "end session",
        "DELETE FROM refresh_worker.sessions WHERE id = $1"
    )
    static let endSessionsOfUser = PostgresQuery(
        "end sessions of user",
        "DELETE FROM refresh_worker.sessions WHERE user_id = $1"
    )
    fileprivate static let recordSecurityEvent = PostgresQuery(
        "record security event",
        "INSERT INTO refresh_worker.security_events (jti, at) VALUES ($1, $2) ON CONFLICT DO NOTHING"
    )
    fileprivate static let securityEvent = PostgresQuery(
        "security event",
        "SELECT at FROM refresh_worker.security_events WHERE jti = $1"
    )
}

extension PostgresTransaction {
    func grants(ofGoogleUser googleUserID: String) throws -> [Grant] {
        try find(.grantsOfAccount) { $0.bind(googleUserID) }
    }

    func issuedTokens(toAccount owner: Grant.Owner, at now: Timestamp) throws -> [IssuedTokens] {
        let result = try run(.issuedTokens) {
            $0.bind(owner.googleUserID)
            $0.bind(owner.email)
            $0.bind(now)
        }
        return try read { () throws(StatementFailure) in
            try result.rows { (row: inout PostgresRow) throws(StatementFailure) in
                IssuedTokens(bytes: row.optionalBlob())
            }
        }
    }

    func grants(withRefreshTokenMark mark: TokenMark) throws -> [Grant] {
        let query: PostgresQuery =
            switch mark.kind {
            case .prefix: .grantsByPrefixMark
            case .digest: .grantsByDigestMark
            }
        return try find(query) { $0.bind(mark.bytes) }
    }

    func lastConnection(of id: GrantID) throws -> Timestamp? {
        if let event = unsentEvents.last(where: { $0.grant == id && $0.kind == .connected }) { return event.at }
        let result = try run(.lastConnection) {
            $0.bind(id.rawValue)
            $0.bind(GrantEvent.Kind.connected.rawValue)
        }
        return try read { () throws(StatementFailure) in
            try result.first { (row: inout PostgresRow) throws(StatementFailure) in
                Timestamp(milliseconds: row.integer())
            }
        }
    }

    // MARK: Users

    func user(_ id: String) throws -> User? {
        try users(.userByID) { $0.bind(id) }.first
    }

    func user(withGoogleUserID googleUserID: String) throws -> User? {
        try users(.userOfAccount) { $0.bind(googleUserID) }.first
    }

    func users(withEmail email: String) throws -> [User] {
        try users(.usersByEmail) { $0.bind(email) }
    }

    func insert(_ user: User) throws {
        let result = try roundTrip { (batch: inout StatementBatch) in PostgresUserRow.addInsert(user, to: &batch) }
        guard result.changedRows == 1 else {
            throw StoreError(.conflict, "There is such a user already, or another has the same account at Google.")
        }
    }

    func update(_ user: User) throws {
        let result = try roundTrip { (batch: inout StatementBatch) in PostgresUserRow.addUpdate(user, to: &batch) }
        guard result.changedRows == 1 else {
            throw StoreError(.conflict, "There is no such user to update, or another has the same account at Google.")
        }
    }

    private func users(_ query: PostgresQuery, bind: (inout Parameters) -> Void) throws(StoreError) -> [User] {
        let result = try run(query, bind: bind)
        return try read { () throws(StatementFailure) in try result.rows(PostgresUserRow.read) }
    }

    // MARK: Sessions

    func session(_ id: SessionID) throws -> Session? {
        let result = try run(.sessionByID) { $0.bind(id.bytes) }
        return try read { () throws(StatementFailure) in try result.first(PostgresSessionRow.read) }
    }

    func insert(_ session: Session) throws {
        let result = try roundTrip { (batch: inout StatementBatch) in PostgresSessionRow.addInsert(session, to: &batch)
        }
        guard result.changedRows == 1 else {
            throw StoreError(.conflict, "There is such a session already, or no such user.")
        }
    }

    func update(_ session: Session) throws {
        let result = try roundTrip { (batch: inout StatementBatch) in PostgresSessionRow.addUpdate(session, to: &batch)
        }
        guard result.changedRows == 1 else {
            throw StoreError(.conflict, "There is no \(session) to update.")
        }
    }

    func endSession(_ id: SessionID) throws {
        _ = try run(.endSession) { $0.bind(id.bytes) }
    }

    func endSessions(ofUser userID: String) throws -> Int {
        try run(.endSessionsOfUser) { $0.bind(userID) }.changedRows
    }

    // MARK: Events

    func record(securityEvent identifier: String, at now: Timestamp) throws -> Bool {
        let result = try run(.recordSecurityEvent) {
            $0.bind(identifier)
            $0.bind(now)
        }
        return result.changedRows == 1
    }

    func hasRecorded(securityEvent identifier: String) throws -> Bool {
        let result = try run(.securityEvent) { $0.bind(identifier) }
        return try read { () throws(StatementFailure) in
            try result.first { (row: inout PostgresRow) throws(StatementFailure) in row.integer() } != nil
        }
    }
}

import Base

extension SQLiteQuery {
    static let grantsOfAccount = SQLiteQuery(
        "grants of a Google account",
        """
        SELECT \(SQLiteGrantRow.columns) FROM \(SQLiteGrantRow.source)
        WHERE google_user_id = ? AND reason <> '\(GrantReason.userDeleted)' ORDER BY id
        """
    )
    static let issuedTokens = SQLiteQuery(
        "tokens issued to an account",
        """
        SELECT issued_tokens FROM grants WHERE google_user_id = ?1 AND issued_tokens IS NOT NULL
        UNION ALL
        SELECT issued_tokens FROM grants WHERE email IS NOT NULL AND lower(email) = lower(?2)
            AND google_user_id IS NULL AND issued_tokens IS NOT NULL
        UNION ALL
        SELECT issued_tokens FROM grants WHERE former_tokens_until > ?3
        """
    )
    static let grantsByPrefixMark = SQLiteQuery(
        "grants by prefix mark",
        """
        SELECT \(SQLiteGrantRow.columns) FROM \(SQLiteGrantRow.source)
        WHERE refresh_prefix_mark = ? AND reason <> '\(GrantReason.userDeleted)' ORDER BY id
        """
    )
    static let grantsByDigestMark = SQLiteQuery(
        "grants by digest mark",
        """
        SELECT \(SQLiteGrantRow.columns) FROM \(SQLiteGrantRow.source)
        WHERE refresh_digest_mark = ? AND reason <> '\(GrantReason.userDeleted)' ORDER BY id
        """
    )
    static let lastConnection = SQLiteQuery(
        "last connection",
        "SELECT at FROM grant_events WHERE grant_id = ? AND kind = ? ORDER BY seq DESC LIMIT 1"
    )
    static let userByID = SQLiteQuery("user by id", "SELECT \(SQLiteUserRow.columns) FROM users WHERE user_id = ?")
    static let userOfAccount = SQLiteQuery(
        "user of a Google account",
        "SELECT \(SQLiteUserRow.columns) FROM users WHERE google_user_id = ?"
    )
    static let usersByEmail = SQLiteQuery(
        "users by e-mail",
        "SELECT \(SQLiteUserRow.columns) FROM users WHERE email IS NOT NULL AND lower(email) = lower(?) ORDER BY user_id"
    )
    /// In an order that violates no foreign key.
    static let moveUser = [
        SQLiteQuery("move sessions", "UPDATE sessions SET user_id = ?2 WHERE user_id = ?1"),
        SQLiteQuery("move grant", "UPDATE grants SET user_id = ?2, \(SQLiteGrantRow.increment) WHERE user_id = ?1"),
    ]
    static let sessionByID = SQLiteQuery(
        "session by id",
        "SELECT \(SQLiteSessionRow.columns) FROM sessions WHERE id = ?"
    )
    static let endSession = SQLiteQuery(
        "end session",
        "DELETE FROM sessions WHERE id = ? RETURNING successor IS NOT NULL"
    )
    static let endSessionsOfUser = SQLiteQuery(
        "end sessions of user",
        "DELETE FROM sessions WHERE user_id = ? RETURNING successor IS NOT NULL"
    )
    static let recordSecurityEvent = SQLiteQuery(
        "record security event",
        "INSERT INTO security_events (jti, at) VALUES (?, ?) ON CONFLICT DO NOTHING"
    )
    static let securityEvent = SQLiteQuery("security event", "SELECT at FROM security_events WHERE jti = ?")
}

extension SQLiteTransaction {
    func grants(ofGoogleUser googleUserID: String) throws -> [Grant] {
        try perform { () throws(StoreError) in
            try connection.rows(.grantsOfAccount, bind: { $0.bind(googleUserID) }, read: SQLiteGrantRow.read)
                .map(withPresentLease)
        }
    }

    func issuedTokens(toAccount owner: Grant.Owner, at now: Timestamp) throws -> [IssuedTokens] {
        try perform { () throws(StoreError) in
            try connection.rows(
                .issuedTokens,
                bind: { statement in
                    statement.bind(owner.googleUserID)
                    statement.bind(owner.email)
                    statement.bind(now)
                },
                read: { (row: inout SQLiteRow) throws(StoreError) in IssuedTokens(bytes: row.optionalBlob()) }
            )
        }
    }

    func grants(withRefreshTokenMark mark: TokenMark) throws -> [Grant] {
        let query: SQLiteQuery =
            switch mark.kind {
            case .prefix: .grantsByPrefixMark
            case .digest: .grantsByDigestMark
            }
        return try perform { () throws(StoreError) in
            try connection.rows(query, bind: { $0.bind(mark.bytes) }, read: SQLiteGrantRow.read)
                .map(withPresentLease)
        }
    }

    // MARK: Users

    func lastConnection(of id: GrantID) throws -> Timestamp? {
        try perform { () throws(StoreError) in
            try connection.first(
                .lastConnection,
                bind: { statement in
                    statement.bind(id.rawValue)
                    statement.bind(GrantEvent.Kind.connected.rawValue)
                },
                read: { (row: inout SQLiteRow) throws(StoreError) in Timestamp(milliseconds: row.integer()) }
            )
        }
    }

    func user(_ id: String) throws -> User? {
        try perform { () throws(StoreError) in
            try connection.first(.userByID, bind: { $0.bind(id) }, read: SQLiteUserRow.read)
        }
    }

    func user(withGoogleUserID googleUserID: String) throws -> User? {
        try perform { () throws(StoreError) in
            try connection.first(.userOfAccount, bind: { $0.bind(googleUserID) }, read: SQLiteUserRow.read)
        }
    }

    func users(withEmail email: String) throws -> [User] {
        try perform { () throws(StoreError) in
            try connection.rows(.usersByEmail, bind: { $0.bind(email) }, read: SQLiteUserRow.read)
        }
    }

    func insert(_ user: User) throws {
        try perform { () throws(StoreError) in
            try connection.run(SQLiteUserRow.insert) { SQLiteUserRow.bindInsert(user, to: $0) }
        }
    }

    func update(_ user: User) throws {
        try perform { () throws(StoreError) in
            try connection.run(SQLiteUserRow.update) { SQLiteUserRow.bindUpdate(user, to: $0) }
            guard connection.changedRows == 1 else {
                throw StoreError(.conflict, "There is no such user to update.")
            }
        }
        // The deleted user's data must leave the log too.
        if user.isDeleted { wipes = true }
    }

    func move(user id: String, to other: String) throws {
        try perform { () throws(StoreError) in
            for query in SQLiteQuery.moveUser {
                try connection.run(query) {
                    $0.bind(id)
                    $0.bind(other)
                }
            }
            try connection.run(.removeUser) { $0.bind(id) }
        }
        forgetGrants()
    }

    // MARK: Sessions

    func session(_ id: SessionID) throws -> Session? {
        try perform { () throws(StoreError) in
            try connection.first(.sessionByID, bind: { $0.bind(id.bytes) }, read: SQLiteSessionRow.read)
        }
    }

    func insert(_ session: Session) throws {
        try perform { () throws(StoreError) in
            try connection.run(SQLiteSessionRow.insert) { SQLiteSessionRow.bindInsert(session, to: $0) }
        }
    }

    func update(_ session: Session) throws {
        try perform { () throws(StoreError) in
            try connection.run(SQLiteSessionRow.update) { SQLiteSessionRow.bindUpdate(session, to: $0) }
            guard connection.changedRows == 1 else {
                throw StoreError(.conflict, "There is no \(session) to update.")
            }
        }
    }

    func endSession(_ id: SessionID) throws {
        _ = try end(.endSession) { $0.bind(id.bytes) }
    }

    func endSessions(ofUser userID: String) throws -> Int {
        try end(.endSessionsOfUser) { $0.bind(userID) }
    }

    private func end(_ query: SQLiteQuery, bind: (Statement) -> Void) throws -> Int {
        let hadSuccessor = try perform { () throws(StoreError) in
            try connection.rows(query, bind: bind) { (row: inout SQLiteRow) throws(StoreError) in row.integer() != 0 }
        }
        if hadSuccessor.contains(true) { wipes = true }
        return hadSuccessor.count
    }

    // MARK: Events

    func record(securityEvent identifier: String, at now: Timestamp) throws -> Bool {
        try perform { () throws(StoreError) in
            try connection.run(.recordSecurityEvent) {
                $0.bind(identifier)
                $0.bind(now)
            }
            return connection.changedRows == 1
        }
    }

    func hasRecorded(securityEvent identifier: String) throws -> Bool {
        try perform { () throws(StoreError) in
            try connection.first(.securityEvent, bind: { $0.bind(identifier) }) {
                (row: inout SQLiteRow) throws(StoreError) in row.integer()
            } != nil
        }
    }
}

package import Base

extension SQLiteQuery {
    /// No user id is empty, so the empty text is before all of them.
    static let pageOfUsers = SQLiteQuery(
        "page of users",
        "SELECT \(SQLiteUserRow.columns) FROM users WHERE user_id > ?1 ORDER BY user_id LIMIT ?2"
    )
    static let removeExpiredSessions = SQLiteQuery(
        "remove expired sessions",
        "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_at <= ?1 LIMIT ?2)"
    )
    /// Two conditions, so that each uses the index: rows whose grace has ended, and rows that a clock that was ahead
    /// has stored.
    static let removeExpiredSuccessors = SQLiteQuery(
        "remove expired successors",
        """
        UPDATE sessions SET successor = NULL WHERE id IN (
            SELECT id FROM sessions WHERE successor IS NOT NULL AND successor_until <= ?1 LIMIT ?2
        )
        """
    )
    static let removeFutureSuccessors = SQLiteQuery(
        "remove future successors",
        """
        UPDATE sessions SET successor = NULL WHERE id IN (
            SELECT id FROM sessions WHERE successor IS NOT NULL AND successor_until > ?1 LIMIT ?2
        )
        """
    )
    static let removeOldSecurityEvents = SQLiteQuery(
        "remove old security events",
        "DELETE FROM security_events WHERE jti IN (SELECT jti FROM security_events WHERE at < ?1 LIMIT ?2)"
    )
    static let removeOldNotices = SQLiteQuery(
        "remove old notices",
        """
        DELETE FROM notices WHERE seq IN (
            SELECT seq FROM notices
            WHERE (accepted_at IS NOT NULL OR given_up_at IS NOT NULL) AND coalesce(accepted_at, given_up_at) < ?1
            LIMIT ?2
        )
        """
    )
    static let endedTombstones = SQLiteQuery(
        "ended tombstones",
        """
        SELECT user_id FROM users WHERE deleted_until <= ?1 AND NOT EXISTS (
            SELECT 1 FROM grants WHERE grants.user_id = users.user_id AND revocation_asked_at IS NOT NULL
        ) LIMIT ?2
        """
    )
    /// The number of grants is also recorded in `meta`, because the triggers count the changes of other programs too.
    static let countAdded = SQLiteQuery(
        "count added grant",
        """
        INSERT INTO meta (key, value) SELECT 'stored_grants', sum(grants) FROM grant_counts WHERE true
        ON CONFLICT (key) DO UPDATE SET value = value + 1
        """
    )
    static let countRemoved = SQLiteQuery(
        "count removed grants",
        "UPDATE meta SET value = value - ?1 WHERE key = 'stored_grants'"
    )
    /// For a database that was copied, or is from an earlier version.
    static let beginCount = SQLiteQuery(
        "begin to count grants",
        """
        INSERT INTO meta (key, value) SELECT 'stored_grants', coalesce(sum(grants), 0) FROM grant_counts WHERE true
        ON CONFLICT (key) DO NOTHING
        """
    )
    static let tally = SQLiteQuery(
        "tally of grants",
        """
        SELECT (SELECT coalesce(sum(grants), 0) FROM grant_counts), CAST(value AS INTEGER)
        FROM meta WHERE key = 'stored_grants'
        """
    )
    static let removeEvents = SQLiteQuery(
        "remove history of user",
        "DELETE FROM grant_events WHERE grant_id IN (SELECT id FROM grants WHERE user_id = ?)"
    )
    static let removeGrant = SQLiteQuery("remove grant of user", "DELETE FROM grants WHERE user_id = ?")
    static let removeUser = SQLiteQuery("remove user", "DELETE FROM users WHERE user_id = ?")
}

extension SQLiteStore {
    package func user(_ id: String) async throws -> User? {
        try await reader.run { connection throws(StoreError) in
            try connection.first(.userByID, bind: { $0.bind(id) }, read: SQLiteUserRow.read)
        }
    }

    package func users(after id: String?, atMost count: Int) async throws -> [User] {
        try await scanner.run { connection throws(StoreError) in
            try connection.rows(
                .pageOfUsers,
                bind: { statement in
                    statement.bind(id ?? "")
                    statement.bind(Int64(max(0, count)))
                },
                read: SQLiteUserRow.read
            )
        }
    }

    package func session(_ id: SessionID) async throws -> Session? {
        try await reader.run { connection throws(StoreError) in
            try connection.first(.sessionByID, bind: { $0.bind(id.bytes) }, read: SQLiteSessionRow.read)
        }
    }

    package func removeExpired(at now: Timestamp) async throws -> RemovedCounts {
        try await writer.run { connection throws(StoreError) in
            let count = try connection.write { () throws(StoreError) in try connection.removeExpired(at: now) }
            if count.sessions + count.successors + count.users > 0 { connection.needsWipe = true }
            return count
        }
    }
}

extension SQLiteConnection {
    fileprivate func removeExpired(at now: Timestamp) throws(StoreError) -> RemovedCounts {
        var count = RemovedCounts()
        count.sessions = try remove(.removeExpiredSessions, to: now)
        count.successors = try remove(.removeExpiredSuccessors, to: now)
        count.successors += try remove(.removeFutureSuccessors, to: now + Session.longestGrace)
        count.securityEvents = try remove(.removeOldSecurityEvents, to: now - Retention.securityEvents)
        count.notices = try remove(.removeOldNotices, to: now - Retention.notices)
        let users = try rows(
            .endedTombstones,
            bind: { statement in
                statement.bind(now)
                statement.bind(Int64(RemovedCounts.limit))
            },
            read: { (row: inout SQLiteRow) throws(StoreError) in row.text() }
        )
        try run(.beginCount)
        for user in users {
            try run(.removeEvents) { $0.bind(user) }
            try run(.removeGrant) { $0.bind(user) }
            let grants = changedRows
            try run(.countRemoved) { $0.bind(Int64(grants)) }
            try run(.endSessionsOfUser) { $0.bind(user) }
            try run(.removeUser) { $0.bind(user) }
        }
        count.users = users.count
        return count
    }

    private func remove(_ query: SQLiteQuery, to limit: Timestamp) throws(StoreError) -> Int {
        try run(query) { statement in
            statement.bind(limit)
            statement.bind(Int64(RemovedCounts.limit))
        }
        return changedRows
    }
}

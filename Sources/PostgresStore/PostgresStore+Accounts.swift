package import Clocks
package import Store

extension Query {
    fileprivate static let removeExpiredSessions = Query(
        "remove expired sessions",
        """
        DELETE FROM refresh_worker.sessions WHERE id IN (
            SELECT id FROM refresh_worker.sessions WHERE expires_at <= $1 LIMIT $2
        )
        """
    )
    /// Sessions whose grace has ended, and those that a clock that was ahead has stored.
    fileprivate static let removeExpiredSuccessors = Query(
        "remove expired successors",
        """
        UPDATE refresh_worker.sessions SET successor = NULL WHERE id IN (
            SELECT id FROM refresh_worker.sessions
            WHERE successor IS NOT NULL AND (successor_until <= $1 OR successor_until > $3) LIMIT $2
        )
        """
    )
    fileprivate static let removeOldSecurityEvents = Query(
        "remove old security events",
        """
        DELETE FROM refresh_worker.security_events WHERE jti IN (
            SELECT jti FROM refresh_worker.security_events WHERE at < $1 LIMIT $2
        )
        """
    )
    fileprivate static let removeOldNotices = Query(
        "remove old notices",
        """
        DELETE FROM refresh_worker.notices WHERE seq IN (
            SELECT seq FROM refresh_worker.notices
            WHERE (accepted_at IS NOT NULL OR given_up_at IS NOT NULL) AND coalesce(accepted_at, given_up_at) < $1
            LIMIT $2
        )
        """
    )
    fileprivate static let endedTombstones = Query(
        "ended tombstones",
        """
        SELECT user_id FROM refresh_worker.users WHERE deleted_until <= $1 AND NOT EXISTS (
            SELECT 1 FROM refresh_worker.grants
            WHERE grants.user_id = users.user_id AND revocation_asked_at IS NOT NULL
        ) LIMIT $2
        """
    )
    private static let grantsOfUsers = "SELECT id FROM refresh_worker.grants WHERE user_id = ANY($1)"
    /// In an order that violates no foreign key.
    fileprivate static let removeUsers = [
        Query("remove histories", "DELETE FROM refresh_worker.grant_events WHERE grant_id IN (\(grantsOfUsers))"),
        Query("remove schedules", "DELETE FROM refresh_worker.grant_schedule WHERE grant_id IN (\(grantsOfUsers))"),
        Query(
            "remove grants",
            """
            WITH gone AS (DELETE FROM refresh_worker.grants WHERE user_id = ANY($1) RETURNING state)
            UPDATE refresh_worker.grant_counts AS old SET grants = old.grants - fewer.grants
            FROM (SELECT state, count(*) AS grants FROM gone GROUP BY state) AS fewer
            WHERE old.state = fewer.state
            """
        ),
        Query("remove sessions", "DELETE FROM refresh_worker.sessions WHERE user_id = ANY($1)"),
        Query("remove users", "DELETE FROM refresh_worker.users WHERE user_id = ANY($1)"),
    ]
}

extension PostgresStore {
    package func removeExpired(at now: Timestamp) async throws -> RemovedCounts {
        var count = try await writer.run { [self] connection, deadline throws(StatementFailure) in
            let limit = Int64(RemovedCounts.limit)
            var batch = changes(until: deadline, on: connection)
            batch.addWriterLock()
            let bind = { (end: Timestamp) in
                { (parameters: inout Parameters) in
                    parameters.bind(end)
                    parameters.bind(limit)
                }
            }
            let sessions = batch.add(.removeExpiredSessions, bind: bind(now))
            let successors = batch.add(.removeExpiredSuccessors) {
                bind(now)(&$0)
                $0.bind(now + Session.longestGrace)
            }
            let events = batch.add(.removeOldSecurityEvents, bind: bind(now - Retention.securityEvents))
            let notices = batch.add(.removeOldNotices, bind: bind(now - Retention.notices))
            let results = try commit(batch, on: connection, until: deadline)
            var count = RemovedCounts()
            count.sessions = results[sessions].changedRows
            count.successors = results[successors].changedRows
            count.securityEvents = results[events].changedRows
            count.notices = results[notices].changedRows
            return count
        }
        count.users = try await removeTombstones(at: now)
        return count
    }

    /// Removes tombstones: they are searched outside the transaction that removes them, which is safe because a
    /// tombstone is never revived.
    private func removeTombstones(at now: Timestamp) async throws -> Int {
        let users = try await scanner.rows(
            .endedTombstones,
            bind: { parameters in
                parameters.bind(now)
                parameters.bind(Int64(RemovedCounts.limit))
            },
            read: { (row: inout Row) throws(StatementFailure) in row.text() }
        )
        guard !users.isEmpty else { return 0 }
        return try await writer.run { [self] connection, deadline throws(StatementFailure) in
            var batch = changes(until: deadline, on: connection)
            batch.addWriterLock()
            var last = 0
            for query in Query.removeUsers {
                last = batch.add(query) { $0.bind(texts: users) { $0 } }
            }
            return try commit(batch, on: connection, until: deadline)[last].changedRows
        }
    }
}

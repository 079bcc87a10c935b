package import Base

extension PostgresQuery {
    fileprivate static let removeExpiredSessions = PostgresQuery(
        "remove expired sessions",
        """
        DELETE FROM refresh_worker.sessions WHERE id IN (
            SELECT id FROM refresh_worker.sessions WHERE expires_at <= $1 LIMIT $2
        )
        """
    )
    /// Sessions whose grace has ended, and those that a clock that was ahead has stored.
    fileprivate static let removeExpiredSuccessors = PostgresQuery(
        "remove expired successors",
        """
        UPDATE refresh_worker.sessions SET successor = NULL WHERE id IN (
            SELECT id FROM refresh_worker.sessions
            WHERE successor IS NOT NULL AND (successor_until <= $1 OR successor_until > $3) LIMIT $2
        )
        """
    )
    fileprivate static let removeOldSecurityEvents = PostgresQuery(
        "remove old security events",
        """
        DELETE FROM refresh_worker.security_events WHERE jti IN (
            SELECT jti FROM refresh_worker.security_events WHERE at < $1 LIMIT $2
        )
        """
    )
    fileprivate static let removeOldNotices = PostgresQuery(
        "remove old notices",
        """
        DELETE FROM refresh_worker.notices WHERE seq IN (
            SELECT seq FROM refresh_worker.notices
            WHERE (accepted_at IS NOT NULL OR given_up_at IS NOT NULL) AND coalesce(accepted_at, given_up_at) < $1
            LIMIT $2
        )
        """
    )
    /// Searches and removes in one statement: between two, another worker can remove a tombstone, and its user can sign
    /// up again.
    ///
    /// PostgreSQL checks the foreign keys at the end of the statement.
    fileprivate static let removeTombstones = PostgresQuery(
        "remove deleted users",
        """
        WITH ended AS MATERIALIZED (
            SELECT user_id FROM refresh_worker.users WHERE deleted_until <= $1 AND NOT EXISTS (
                SELECT 1 FROM refresh_worker.grants
                WHERE grants.user_id = users.user_id AND revocation_asked_at IS NOT NULL
            ) LIMIT $2 FOR UPDATE
        ), gone AS (
            DELETE FROM refresh_worker.grants WHERE user_id IN (SELECT user_id FROM ended) RETURNING id, state
        ), histories AS (
            DELETE FROM refresh_worker.grant_events WHERE grant_id IN (SELECT id FROM gone)
        ), schedules AS (
            DELETE FROM refresh_worker.grant_schedule WHERE grant_id IN (SELECT id FROM gone)
        ), counts AS (
            UPDATE refresh_worker.grant_counts AS old SET grants = old.grants - fewer.grants
            FROM (SELECT state, count(*) AS grants FROM gone GROUP BY state) AS fewer
            WHERE old.state = fewer.state
        ), ended_sessions AS (
            DELETE FROM refresh_worker.sessions WHERE user_id IN (SELECT user_id FROM ended)
        )
        DELETE FROM refresh_worker.users WHERE user_id IN (SELECT user_id FROM ended)
        """
    )
}

extension PostgresStore {
    package func removeExpired(at now: Timestamp) async throws -> RemovedCounts {
        try await writer.run { [self] connection, deadline throws(StatementFailure) in
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
            let users = batch.add(.removeTombstones, bind: bind(now))
            let results = try commit(batch, on: connection, until: deadline)
            var count = RemovedCounts()
            count.sessions = results[sessions].changedRows
            count.successors = results[successors].changedRows
            count.securityEvents = results[events].changedRows
            count.notices = results[notices].changedRows
            count.users = results[users].changedRows
            return count
        }
    }
}

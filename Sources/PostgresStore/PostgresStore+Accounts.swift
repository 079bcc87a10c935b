package import Clocks
package import Store

extension Query {
    fileprivate static let sweepSessions = Query(
        "sweep sessions",
        """
        DELETE FROM refresh_worker.sessions WHERE id IN (
            SELECT id FROM refresh_worker.sessions WHERE expires_at <= $1 LIMIT $2
        )
        """
    )
    /// Sessions whose grace has ended, and those that a clock that was ahead has stored.
    fileprivate static let sweepSuccessors = Query(
        "sweep successors",
        """
        UPDATE refresh_worker.sessions SET successor = NULL WHERE id IN (
            SELECT id FROM refresh_worker.sessions
            WHERE successor IS NOT NULL AND (successor_until <= $1 OR successor_until > $3) LIMIT $2
        )
        """
    )
    fileprivate static let sweepSecurityEvents = Query(
        "sweep security events",
        """
        DELETE FROM refresh_worker.security_events WHERE jti IN (
            SELECT jti FROM refresh_worker.security_events WHERE at < $1 LIMIT $2
        )
        """
    )
    fileprivate static let sweepNotices = Query(
        "sweep notices",
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
    package func sweep(at now: Timestamp) async throws -> SweepCount {
        var count = try await writer.run { [self] connection, deadline throws(StatementFailure) in
            let limit = Int64(SweepCount.limit)
            var batch = changes(until: deadline, on: connection)
            batch.addTurn()
            let bind = { (end: Timestamp) in
                { (parameters: inout Parameters) in
                    parameters.bind(end)
                    parameters.bind(limit)
                }
            }
            let sessions = batch.add(.sweepSessions, bind: bind(now))
            let successors = batch.add(.sweepSuccessors) {
                bind(now)(&$0)
                $0.bind(now + Session.longestGrace)
            }
            let events = batch.add(.sweepSecurityEvents, bind: bind(now - Retention.securityEvents))
            let notices = batch.add(.sweepNotices, bind: bind(now - Retention.notices))
            let answers = try commit(batch, on: connection, until: deadline)
            var count = SweepCount()
            count.sessions = answers[sessions].changedRows
            count.successors = answers[successors].changedRows
            count.securityEvents = answers[events].changedRows
            count.notices = answers[notices].changedRows
            return count
        }
        count.users = try await sweepUsers(at: now)
        return count
    }

    /// Removes tombstones: they are searched outside the transaction that removes them, which is safe because a
    /// tombstone is never revived.
    private func sweepUsers(at now: Timestamp) async throws -> Int {
        let users = try await scanner.rows(
            .endedTombstones,
            bind: { parameters in
                parameters.bind(now)
                parameters.bind(Int64(SweepCount.limit))
            },
            read: { (row: inout Row) throws(StatementFailure) in row.text() }
        )
        guard !users.isEmpty else { return 0 }
        return try await writer.run { [self] connection, deadline throws(StatementFailure) in
            var batch = changes(until: deadline, on: connection)
            batch.addTurn()
            var last = 0
            for query in Query.removeUsers {
                last = batch.add(query) { $0.bind(texts: users) { $0 } }
            }
            return try commit(batch, on: connection, until: deadline)[last].changedRows
        }
    }
}

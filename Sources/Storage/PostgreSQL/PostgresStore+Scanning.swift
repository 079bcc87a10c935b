package import Base

extension PostgresStore {
    static let scanQueries = ScanQueries(
        due: "grant_schedule",
        overdue: """
            (
                SELECT grant_id FROM refresh_worker.grant_schedule
                WHERE client_id = $1 AND due_at <= $2 ORDER BY due_at, grant_id LIMIT $3
            ) AS s JOIN refresh_worker.grants ON id = s.grant_id
            """,
        // A grant cannot be removed without its row in the schedule, which is much narrower.
        tally: """
            SELECT (SELECT count(*) FROM refresh_worker.grant_schedule),
                (SELECT coalesce(sum(grants), 0)::bigint FROM refresh_worker.grant_counts)
            """,
        // Rows that a result is being stored in are left out: they get a due time of their own. Both rows are locked:
        // only a locked row is read again if another transaction has changed it since the snapshot, and the grant's
        // reason must be the latest.
        expedite: """
            WITH part AS MATERIALIZED (
                SELECT g.id FROM refresh_worker.grants AS g JOIN refresh_worker.grant_schedule AS s ON s.grant_id = g.id
                WHERE g.client_id = $1 AND s.due_at > $2 AND \(ScanQueries.isPassingRetry)
                ORDER BY g.id LIMIT $3 FOR UPDATE OF s, g SKIP LOCKED
            )
            UPDATE refresh_worker.grant_schedule AS s SET due_at = $2 FROM part WHERE s.grant_id = part.id
            RETURNING s.grant_id
            """,
        reschedule: { due in
            """
            UPDATE refresh_worker.grant_schedule AS s SET due_at = \(due) FROM refresh_worker.grants AS g
            WHERE g.id = s.grant_id AND \(ScanQueries.isOfTheFuture)
            """
        }
    )

    private static let entries = "SELECT due_at, grant_id FROM refresh_worker.grant_schedule WHERE client_id = $1"
    static let due = SQLQuery("due", "\(entries) AND due_at <= $2 ORDER BY due_at, grant_id LIMIT $3")
    static let dueAfter = SQLQuery(
        "due after a cursor",
        """
        \(entries) AND due_at <= $2 AND (due_at, grant_id) > ($4::bigint, $5::bigint)
        ORDER BY due_at, grant_id LIMIT $3
        """
    )

    package func due(
        ofClient clientID: String,
        by limit: Timestamp,
        after cursor: DueEntry?,
        atMost count: Int
    ) async throws -> [DueEntry] {
        let values: [SQLValue] = [.text(clientID), .time(limit), .limit(count)]
        let statement =
            if let cursor {
                SQLStatement(Self.dueAfter, values + [.time(cursor.dueAt), .integer(cursor.id.rawValue)])
            } else {
                SQLStatement(Self.due, values)
            }
        return try await rows(statement, by: .scan, DueEntry.read)
    }
}

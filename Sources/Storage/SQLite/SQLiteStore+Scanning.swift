package import Base

extension SQLiteStore {
    static let scanQueries = ScanQueries(
        due: "grants",
        overdue: """
            grants INDEXED BY grants_due WHERE client_id = $1 AND due_at <= $2 ORDER BY due_at, id LIMIT $3
            """,
        tally: """
            SELECT (SELECT coalesce(sum(grants), 0) FROM grant_counts), CAST(value AS INTEGER)
            FROM meta WHERE key = 'stored_grants'
            """,
        // Sorted like the index by state, which ends with the id.
        expedite: """
            UPDATE grants SET due_at = $2, \(SQLiteGrantRow.increment) WHERE id IN (
                SELECT id FROM grants INDEXED BY grants_by_state
                WHERE client_id = $1 AND due_at > $2 AND \(ScanQueries.isPassingRetry)
                ORDER BY id LIMIT $3
            ) RETURNING id
            """,
        reschedule: { due in
            "UPDATE grants SET due_at = \(due), \(SQLiteGrantRow.increment) WHERE \(ScanQueries.isOfTheFuture)"
        }
    )

    static let due = SQLQuery(
        "due",
        "SELECT due_at, id FROM grants WHERE client_id = ?1 AND due_at <= ?2 ORDER BY due_at, id LIMIT ?3"
    )
    // The rows after a cursor are read in two parts: for `(due_at, id) > (?, ?)` SQLite uses the index only for
    // `due_at`, and would read all grants of the cursor's instant again for each page.
    static let dueAtCursor = SQLQuery(
        "due at the cursor's time",
        "SELECT due_at, id FROM grants WHERE client_id = ?1 AND due_at = ?2 AND id > ?4 ORDER BY id LIMIT ?3"
    )
    static let dueAfterCursor = SQLQuery(
        "due after the cursor's time",
        """
        SELECT due_at, id FROM grants WHERE client_id = ?1 AND due_at > ?4 AND due_at <= ?2
        ORDER BY due_at, id LIMIT ?3
        """
    )

    package func due(
        ofClient clientID: String,
        by limit: Timestamp,
        after cursor: DueEntry?,
        atMost count: Int
    ) async throws -> [DueEntry] {
        let count = max(0, count)
        let entries = { [self] (query: SQLQuery, limit: Timestamp, count: Int, after: [SQLValue]) in
            try await rows(
                SQLStatement(query, [.text(clientID), .time(limit), .limit(count)] + after),
                by: .scan,
                DueEntry.read
            )
        }
        guard let cursor else { return try await entries(Self.due, limit, count, []) }
        guard cursor.dueAt <= limit else { return [] }
        let first = try await entries(Self.dueAtCursor, cursor.dueAt, count, [.integer(cursor.id.rawValue)])
        guard first.count < count else { return first }
        return first + (try await entries(Self.dueAfterCursor, limit, count - first.count, [.time(cursor.dueAt)]))
    }
}

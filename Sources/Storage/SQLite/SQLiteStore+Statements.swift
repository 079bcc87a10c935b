package import Base

extension SQLiteStore {
    static let grantQueries = SQLiteGrantRow.queries
    static let lastLease = SQLQuery(
        "last lease",
        sql: "SELECT max(until) FROM \(LeaseFile.schema).leases WHERE epoch = ?1"
    )
    static let schemaVersion = SQLiteSchema.readVersion

    static let removeTombstones = [
        SQLQuery(
            "count removed grants",
            sql: """
                INSERT INTO meta (key, value)
                SELECT 'stored_grants', coalesce(sum(grants), 0) - \(endedGrants) FROM grant_counts WHERE true
                ON CONFLICT (key) DO UPDATE SET value = value - \(endedGrants) WHERE \(endedGrants) > 0
                """
        ),
        SQLQuery(
            "remove history of users",
            sql: """
                DELETE FROM grant_events
                WHERE grant_id IN (SELECT id FROM grants WHERE user_id IN (\(endedUsers)))
                """
        ),
        SQLQuery("remove grants of users", sql: "DELETE FROM grants WHERE user_id IN (\(endedUsers))"),
        SQLQuery("remove sessions of users", sql: "DELETE FROM sessions WHERE user_id IN (\(endedUsers))"),
        SQLQuery("remove users", sql: "DELETE FROM users WHERE user_id IN (\(endedUsers))"),
    ]
    /// The same users in each statement of a transaction.
    private static let endedUsers = """
        SELECT user_id FROM users WHERE deleted_until <= ?1 AND NOT EXISTS (
            SELECT 1 FROM grants WHERE grants.user_id = users.user_id AND revocation_asked_at IS NOT NULL
        ) ORDER BY deleted_until, user_id LIMIT ?2
        """

    private static let endedGrants = "(SELECT count(*) FROM grants WHERE user_id IN (\(endedUsers)))"

    /// The number of grants is also recorded in `meta`, because the triggers count the changes of other programs too.
    static let countAdded = SQLQuery(
        "count added grant",
        sql: """
            INSERT INTO meta (key, value) SELECT 'stored_grants', sum(grants) FROM grant_counts WHERE true
            ON CONFLICT (key) DO UPDATE SET value = value + 1
            """
    )

    var beforeMove: [SQLStatement] { [] }
    var databaseName: String { "The database \(path)" }

    func rows<Element: Sendable>(
        _ statements: [SQLStatement],
        by reader: SQLReader,
        _ read: @escaping @Sendable (_ position: Int, _ row: inout SQLiteRow) throws(StoreError) -> Element
    ) async throws(StoreError) -> [Element] {
        try await (reader == .single ? self.reader : scanner).run { connection throws(StoreError) in
            // One statement needs no transaction to see one state.
            guard statements.count > 1 else { return try connection.rows(of: statements, read) }
            return try connection.read { () throws(StoreError) in try connection.rows(of: statements, read) }
        }
    }

    func change<Element: Sendable>(
        _ statements: [SQLStatement],
        _ options: SQLChangeOptions,
        _ read: @escaping @Sendable (inout SQLiteRow) throws(StoreError) -> Element
    ) async throws(StoreError) -> (changed: [Int], last: [Element]) {
        try await writer.run { connection throws(StoreError) in
            let result = try connection.write(evenIfMoved: options.contains(.evenIfMoved)) {
                () throws(StoreError) -> (changed: [Int], last: [Element]) in
                let changed = try connection.change(statements.dropLast())
                guard let last = statements.last else { return (changed, []) }
                let rows = try connection.rows(last, read: read)
                return (changed + [connection.changedRows], rows)
            }
            if options.contains(.wipes), result.changed.contains(where: { $0 > 0 }) { connection.needsWipe = true }
            return result
        }
    }

    static let allOfGrants = "SELECT \(Grant.table.names) FROM grants"

    static func restore(_ rows: [[SQLValue]], of kind: ArchiveRecord.Kind) -> [SQLStatement] {
        let restore = kind.table.add("restore \(kind.rawValue)")
        return rows.map { SQLStatement(restore, $0) }
    }
}

extension SQLiteConnection {
    fileprivate func rows<Element>(
        of statements: [SQLStatement],
        _ read: (_ position: Int, _ row: inout SQLiteRow) throws(StoreError) -> Element
    ) throws(StoreError) -> [Element] {
        var elements: [Element] = []
        for (position, statement) in statements.enumerated() {
            elements += try rows(statement) { row throws(StoreError) in try read(position, &row) }
        }
        return elements
    }
}

extension SQLiteStore {
    static let scanQueries = ScanQueries(
        due: "grants",
        overdue: """
            grants INDEXED BY grants_due WHERE client_id = $1 AND due_at <= $2 ORDER BY due_at, id LIMIT $3
            """,
        tally: """
            SELECT (SELECT coalesce(sum(grants), 0) FROM grant_counts), CAST(value AS INTEGER), 0
            FROM meta WHERE key = 'stored_grants'
            """,
        // Sorted like the index by state, which ends with the id.
        expedite: """
            UPDATE grants SET due_at = $2, \(Grant.increment) WHERE id IN (
                SELECT id FROM grants INDEXED BY grants_by_state
                WHERE client_id = $1 AND due_at > $2 AND \(ScanQueries.isPassingRetry)
                ORDER BY id LIMIT $3
            ) RETURNING id
            """,
        reschedule: { due in
            "UPDATE grants SET due_at = \(due), \(Grant.increment) WHERE \(ScanQueries.isOfTheFuture)"
        },
        restartDoubts: { due in
            """
            UPDATE grants SET suspected_since = $1, due_at = \(due), \(Grant.increment) WHERE id IN (
                SELECT id FROM grants INDEXED BY grants_by_state WHERE \(ScanQueries.isDoubtToRestart)
                ORDER BY id LIMIT $4
            ) RETURNING id, client_id
            """
        }
    )

    static let due = SQLQuery(
        "due",
        sql: "SELECT due_at, id FROM grants WHERE client_id = ?1 AND due_at <= ?2 ORDER BY due_at, id LIMIT ?3"
    )
    // The rows after a cursor are read in two parts: for `(due_at, id) > (?, ?)` SQLite uses the index only for
    // `due_at`, and would read all grants of the cursor's instant again for each page.
    static let dueAtCursor = SQLQuery(
        "due at the cursor's time",
        sql: "SELECT due_at, id FROM grants WHERE client_id = ?1 AND due_at = ?2 AND id > ?4 ORDER BY id LIMIT ?3"
    )
    static let dueAfterCursor = SQLQuery(
        "due after the cursor's time",
        sql: """
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

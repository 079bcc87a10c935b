package import Base

extension SQLQuery {
    /// Locks the rows whose claim is stored, in the order in which all other statements lock them.
    ///
    /// It is a statement of its own, so that the next one sees the commits that it waited for. A transaction that
    /// changes a grant locks this row first, so the grant stays as the next statement sees it.
    fileprivate static let lockClaims = SQLQuery(
        "lock claims",
        """
        SELECT count(*) FROM (
            SELECT s.grant_id FROM refresh_worker.grant_schedule AS s
            JOIN unnest($1::bigint[], $2::bigint[]) AS wanted (id, claim)
                ON wanted.id = s.grant_id AND wanted.claim = s.lease_claim
            ORDER BY s.grant_id FOR UPDATE OF s
        ) AS locked
        """
    )
    fileprivate static let wholeRows = plainRows(PostgresGrantRow.changing)
    fileprivate static let refreshedRows = plainRows(PostgresGrantRow.refreshed)
    fileprivate static let storeWhole = storePlain("store whole plain refreshes", wholeRows)
    fileprivate static let storeRefreshed = storePlain("store plain refreshes", refreshedRows)

    /// The columns that the statements need in addition to those of the grant.
    private static let plainColumns: [Table<PlainRefresh>.Column] = [
        .init("claim", .integer) { .integer($0.claimed.lease?.claim) },
        .init("row_version", .integer) { .integer($0.claimed.lease?.rowVersion) },
        .init("due_at", .integer) { .time($0.refreshed.dueAt) },
        .init("client_secret", .integer) { .integer(Int64($0.clientSecret)) },
    ]

    /// The columns of the refreshed grant, and then ``plainColumns``.
    private static func plainRows(_ table: Table<Grant>) -> Table<PlainRefresh> {
        let refreshed = table.columns.map { column in
            Table<PlainRefresh>.Column(column.name, column.type) { column.value($0.refreshed) }
        }
        return Table(table.name, refreshed + plainColumns)
    }

    /// Returns the statement that writes these columns of grants that are as they were claimed.
    ///
    /// `xmin` is the transaction that wrote the row: it differs as soon as anything has changed the grant. The last
    /// parameter is the time of the successes.
    private static func storePlain(_ name: String, _ rows: Table<PlainRefresh>) -> SQLQuery {
        let ofGrant = Table(rows.name, rows.columns.dropLast(plainColumns.count))
        return SQLQuery(
            name,
            """
            WITH stored AS (
                UPDATE refresh_worker.grants AS old SET \(ofGrant.changes)
                FROM \(rows.newRows)
                    JOIN refresh_worker.grant_schedule AS s ON s.grant_id = new.id AND s.lease_claim = new.claim
                WHERE old.id = new.id AND old.xmin::text::bigint = new.row_version
                RETURNING old.id, old.client_id, new.due_at, new.client_secret
            ), scheduled AS (
                UPDATE refresh_worker.grant_schedule AS s
                SET due_at = stored.due_at, lease_owner = NULL, lease_claim = NULL, lease_epoch = NULL, lease_until = NULL
                FROM stored WHERE s.grant_id = stored.id
            ), counted AS (
                INSERT INTO refresh_worker.client_successes (client_id, at, successes, client_secret)
                SELECT client_id, $\(rows.columns.count + 1)::bigint, count(*), client_secret FROM stored
                GROUP BY client_id, client_secret
            )
            SELECT id FROM stored
            """
        )
    }
}

extension PostgresStore {
    package var storesPlainRefreshes: Bool { true }

    package func storePlain(_ refreshes: [PlainRefresh], at now: Timestamp) async throws -> Set<GrantID> {
        guard !refreshes.isEmpty else { return [] }
        let sorted = refreshes.sorted { $0.claimed.id < $1.claimed.id }
        return try await results.run { [self] connection, deadline throws(StoreError) in
            var batch = changes(until: deadline, on: connection)
            batch.add(
                .lockClaims,
                .ids(sorted.map(\.claimed.id)),
                .array(.integer, sorted.map { .integer($0.claimed.lease?.claim) })
            )
            var positions: [Int] = []
            for isWhole in [false, true] {
                let part = sorted.filter { $0.isWhole == isWhole }
                guard !part.isEmpty else { continue }
                let rows = isWhole ? SQLQuery.wholeRows : SQLQuery.refreshedRows
                let position = batch.add(
                    SQLStatement(isWhole ? .storeWhole : .storeRefreshed, rows.arrays(of: part) + [.time(now)])
                )
                positions.append(position)
            }
            batch.add(.clock)
            // A repetition finds that the claims have ended, and stores nothing.
            let results = try commit(batch, isRepeatable: true, on: connection, until: deadline)
            var stored: Set<GrantID> = []
            for position in positions {
                stored.formUnion(try results[position].rows { GrantID(rawValue: $0.integer()) })
            }
            return stored
        }
    }
}

extension PlainRefresh {
    /// `true` if more columns change than those of most refreshes.
    fileprivate var isWhole: Bool { !PostgresGrantRow.keepsSeldomChanged(refreshed, from: claimed) }
}

extension UncountedSuccesses {
    /// Removes the successes of clients and returns them.
    ///
    /// Only a transaction with the writers' lock does so, and a plain refresh adds a row of its own: so neither waits
    /// for the other.
    static let take = SQLQuery(
        "take uncounted successes",
        """
        DELETE FROM refresh_worker.client_successes WHERE client_id = ANY($1)
        RETURNING client_id, at, successes, client_secret
        """
    )

    static func read(_ row: inout PostgresRow) -> (client: String, successes: UncountedSuccesses) {
        let client = row.text()
        let at = Timestamp(milliseconds: row.integer())
        let count = Int(row.integer())
        let secret = UInt32(truncatingIfNeeded: row.integer())
        return (client, UncountedSuccesses(at: at, count: count, clientSecret: secret))
    }
}

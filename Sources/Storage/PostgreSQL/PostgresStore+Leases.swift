package import Base

extension SQLQuery {
    /// A lease is free once it has ended, or if it belongs to another clock.
    ///
    /// A lease with an impossibly late end is also free: the clock was set back, or the new primary's clock is behind.
    /// `$3` is the duration of a lease, `$7` a test's clock. `$8` says if a lease that has ended can be taken over from
    /// its owner.
    private static let isFree = """
        (s.lease_owner IS NULL OR s.lease_epoch <> $2
            OR ($8 OR s.lease_owner = '') AND s.lease_until NOT BETWEEN \(now(unless: 7)) + 1 AND \(now(unless: 7)) + 2 * $3)
        """

    private static func claim(_ name: String, from source: String, where condition: String) -> SQLQuery {
        SQLQuery(
            name,
            sql: """
                WITH free AS MATERIALIZED (
                    SELECT s.grant_id, coalesce(s.lease_owner <> '', false) AS is_unfinished, \(now(unless: 7)) AS now
                    FROM \(source)
                    WHERE s.grant_id = ANY($4) AND \(condition) AND \(isFree)
                    ORDER BY s.grant_id FOR UPDATE OF s SKIP LOCKED
                )
                UPDATE refresh_worker.grant_schedule AS s
                SET lease_owner = $1, lease_claim = wanted.claim, lease_epoch = $2, lease_until = free.now + $3
                FROM free JOIN unnest($4::bigint[], $5::bigint[]) AS wanted (id, claim) ON wanted.id = free.grant_id
                WHERE s.grant_id = free.grant_id
                RETURNING s.grant_id, free.is_unfinished
                """
        )
    }

    static let claimDue = claim("claim", from: "refresh_worker.grant_schedule AS s", where: "s.due_at <= $6::bigint")
    static let claimAny = claim(
        "claim whenever due",
        from: PostgresGrantRow.source,
        where: """
            ($6::bigint IS NULL AND g.state NOT IN (\(GrantState.refreshEndingList))
                OR g.revocation_asked_at IS NOT NULL)
            """
    )
    /// Sent after the claim, as a statement of its own: it sees the commits of transactions that had locked a row,
    /// which the claim, being one statement, might not.
    static let claimed = SQLQuery(
        "claimed grants",
        sql: """
            SELECT \(PostgresGrantRow.columns), g.revision FROM \(PostgresGrantRow.source)
            JOIN unnest($1::bigint[], $2::bigint[]) AS wanted (id, claim)
                ON wanted.id = s.grant_id AND wanted.claim = s.lease_claim
            """
    )

    /// The rows of the grants `$1` that are leased under the claims `$2`, locked in the order in which all statements
    /// lock them.
    private static let lockedByClaim = """
        SELECT s.grant_id FROM refresh_worker.grant_schedule AS s
        JOIN unnest($1::bigint[], $2::bigint[]) AS wanted (id, claim)
            ON wanted.id = s.grant_id AND wanted.claim = s.lease_claim
        ORDER BY s.grant_id FOR UPDATE OF s
        """
    private static let named = "WITH named AS MATERIALIZED (\(lockedByClaim))"
    static let renew = SQLQuery(
        "renew leases",
        sql: """
            \(named), clock AS MATERIALIZED (SELECT \(now(unless: 5)) AS now)
            UPDATE refresh_worker.grant_schedule AS s SET lease_until = clock.now + $3 FROM named, clock
            WHERE s.grant_id = named.grant_id AND s.lease_epoch = $4
            RETURNING s.grant_id
            """
    )
    fileprivate static let release = SQLQuery(
        "release leases",
        sql: """
            \(named)
            UPDATE refresh_worker.grant_schedule AS s
            SET lease_owner = NULL, lease_claim = NULL, lease_epoch = NULL, lease_until = NULL FROM named
            WHERE s.grant_id = named.grant_id
            """
    )
}

extension PostgresStore {
    package func claim(
        _ ids: [GrantID],
        dueBy: Timestamp?,
        owner: String,
        for span: Duration,
        takesOver: Bool
    ) async throws -> [Grant] {
        guard !ids.isEmpty else { return [] }
        let claims = ids.map { id in (id: id, number: Int64(random.nextBits() >> 1)) }
        let grants = try await leasing.run { [self] connection, deadline throws(StoreError) in
            var batch = changes(until: deadline, on: connection)
            let claimPosition = batch.add(
                dueBy == nil ? .claimAny : .claimDue,
                .text(owner),
                .text(Self.epoch),
                .integer(span.wholeMilliseconds),
                .ids(claims.map(\.id)),
                .integers(claims.map(\.number)),
                .time(dueBy),
                .integer(leaseClock?.sinceBoot.milliseconds),
                .flag(takesOver)
            )
            let position = batch.add(.claimed, .ids(claims.map(\.id)), .integers(claims.map(\.number)))
            batch.add(.clock)
            let results = try commit(batch, on: connection, until: deadline)
            let unfinished = Set(
                try results[claimPosition].rows { row -> GrantID? in
                    let id = GrantID(rawValue: row.integer())
                    return row.flag() ? id : nil
                }.compactMap(\.self)
            )
            return try results[position].rows { row throws(StoreError) -> Grant in
                var grant = try Grant.read(&row)
                if var lease = grant.lease {
                    lease.followsUnfinishedClaim = unfinished.contains(grant.id)
                    lease.revision = row.integer()
                    grant.setLease(lease)
                }
                return grant
            }
        }
        let byID = Dictionary(grants.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        return ids.compactMap { byID[$0] }
    }

    package func renew(_ leases: [GrantID: Int64], for span: Duration) async throws -> Set<GrantID> {
        guard !leases.isEmpty else { return [] }
        let pairs = leases.sorted { $0.key < $1.key }
        return try await leasing.run { [self] connection, deadline throws(StoreError) in
            var batch = changes(until: deadline, on: connection)
            let position = batch.add(
                .renew,
                .ids(pairs.map(\.key)),
                .integers(pairs.map(\.value)),
                .integer(span.wholeMilliseconds),
                .text(Self.epoch),
                .integer(leaseClock?.sinceBoot.milliseconds)
            )
            let ids = try commit(batch, isRepeatable: true, on: connection, until: deadline)[position]
                .rows { GrantID(rawValue: $0.integer()) }
            return Set(ids)
        }
    }

    package func release(_ leases: [GrantID: Int64]) async throws {
        guard !leases.isEmpty else { return }
        let pairs = leases.sorted { $0.key < $1.key }
        try await leasing.run { [self] connection, deadline throws(StoreError) in
            var batch = StatementBatch(until: deadline)
            batch.add(.release, .ids(pairs.map(\.key)), .integers(pairs.map(\.value)))
            _ = try commit(batch, isRepeatable: true, on: connection, until: deadline)
        }
    }
}

extension SQLQuery {
    /// Locks the rows whose claim is stored, in the order in which all other statements lock them.
    ///
    /// It is a statement of its own, so that the next one sees the commits that it waited for. A transaction that
    /// changes a grant locks this row first, so the grant stays as the next statement sees it.
    fileprivate static let lockClaims = SQLQuery(
        "lock claims",
        sql: """
            SELECT count(*) FROM (
                \(lockedByClaim)
            ) AS locked
            """
    )
    fileprivate static let wholeRows = plainRows(PostgresGrantRow.changing)
    fileprivate static let refreshedRows = plainRows(PostgresGrantRow.refreshed)
    fileprivate static let storeWhole = storePlain("store whole plain refreshes", rows: wholeRows)
    fileprivate static let storeRefreshed = storePlain("store plain refreshes", rows: refreshedRows)

    /// The columns that the statements need in addition to those of the grant.
    private static let plainColumns: [Table<PlainRefresh>.Column] = [
        .init("claim", .integer) { .integer($0.claimed.lease?.claim) },
        .init("claimed_revision", .integer) { .integer($0.claimed.lease?.revision) },
        .init("due_at", .integer) { .time($0.refreshed.dueAt) },
        .init("client_secret", .integer) { .integer(Int64($0.secretFingerprint)) },
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
    /// The last parameter is the time of the successes.
    private static func storePlain(_ name: String, rows: Table<PlainRefresh>) -> SQLQuery {
        let ofGrant = Table(rows.name, rows.columns.dropLast(plainColumns.count))
        return SQLQuery(
            name,
            sql: """
                WITH stored AS (
                    UPDATE refresh_worker.grants AS old SET \(ofGrant.changes), \(Grant.increment)
                    FROM \(rows.newRows)
                        JOIN refresh_worker.grant_schedule AS s ON s.grant_id = new.id AND s.lease_claim = new.claim
                    WHERE old.id = new.id AND old.revision = new.claimed_revision
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
    package var isSharedByWorkers: Bool { true }

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
        sql: """
            DELETE FROM refresh_worker.client_successes WHERE client_id = ANY($1)
            RETURNING client_id, at, successes, client_secret
            """
    )

    static func read(_ row: inout PostgresRow) -> (client: String, successes: UncountedSuccesses) {
        let client = row.text()
        let at = Timestamp(milliseconds: row.integer())
        let count = Int(row.integer())
        let secret = UInt32(truncatingIfNeeded: row.integer())
        return (client, UncountedSuccesses(at: at, count: count, secretFingerprint: secret))
    }
}

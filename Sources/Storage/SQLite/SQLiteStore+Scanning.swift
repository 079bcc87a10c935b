package import Base
package import Crypto

extension SQLiteQuery {
    /// Goes from client to client in the due index, without reading the grants of each.
    static let dueClients = SQLiteQuery(
        "clients with due times",
        """
        WITH RECURSIVE clients_due (client) AS (
            SELECT min(client_id) FROM grants WHERE due_at IS NOT NULL
            UNION ALL
            SELECT (SELECT min(client_id) FROM grants WHERE due_at IS NOT NULL AND client_id > client) FROM clients_due
            WHERE client IS NOT NULL
        )
        SELECT client FROM clients_due WHERE client IS NOT NULL
        """
    )
    static let due = SQLiteQuery(
        "due",
        "SELECT due_at, id FROM grants WHERE client_id = ?1 AND due_at <= ?2 ORDER BY due_at, id LIMIT ?3"
    )
    // The rows after a cursor are read in two parts: for `(due_at, id) > (?, ?)` SQLite uses the index only for
    // `due_at`, and would read all grants of the cursor's instant again for each page.
    static let dueAtCursor = SQLiteQuery(
        "due at the cursor's time",
        "SELECT due_at, id FROM grants WHERE client_id = ?1 AND due_at = ?2 AND id > ?4 ORDER BY id LIMIT ?3"
    )
    static let dueAfterCursor = SQLiteQuery(
        "due after the cursor's time",
        """
        SELECT due_at, id FROM grants WHERE client_id = ?1 AND due_at > ?4 AND due_at <= ?2
        ORDER BY due_at, id LIMIT ?3
        """
    )
    static let countByState = SQLiteQuery("count by state", "SELECT state, grants FROM grant_counts WHERE grants > 0")
    static let countDue = SQLiteQuery(
        "count due",
        "SELECT count(*), min(due_at) FROM grants WHERE client_id = ?1 AND due_at <= ?2"
    )
    /// Counts the expired grants, and those in doubt, among the `retrying` ones of a range of ids; see
    /// `ExpiredGrants.Sample`.
    static let countExpiredRetries = SQLiteQuery(
        "count expired retries",
        """
        SELECT client_id, count(*), count(*) FILTER (WHERE expired_at <= ?1), min(expired_at),
            count(*) FILTER (WHERE reason = '\(GrantReason.invalidGrantUnconfirmed.rawValue)')
        FROM (
            SELECT client_id, coalesce(access_expires_at, since) AS expired_at, reason
            FROM grants INDEXED BY grants_by_state
            WHERE state = '\(GrantState.retrying.rawValue)' AND id >= ?2 AND id <= ?3 ORDER BY id LIMIT ?4
        ) GROUP BY client_id
        """
    )
    /// Counts the expired grants among the longest overdue ones of a client that are `active`.
    static let countExpiredOverdue = SQLiteQuery(
        "count expired and overdue",
        """
        SELECT count(*), count(*) FILTER (WHERE is_active AND expired_at <= ?2),
            min(expired_at) FILTER (WHERE is_active)
        FROM (
            SELECT state = '\(GrantState.active.rawValue)' AS is_active,
                coalesce(access_expires_at, since) AS expired_at
            FROM grants INDEXED BY grants_due
            WHERE client_id = ?1 AND due_at <= ?2 ORDER BY due_at, id LIMIT ?3
        )
        """
    )
    static let countEnding = SQLiteQuery(
        "count ending",
        """
        SELECT count(*) FROM grants INDEXED BY grants_by_ending
        WHERE refresh_expires_at < ? AND state IN (\(GrantState.connectedList))
        """
    )
    static let countIdle = SQLiteQuery(
        "count idle",
        """
        SELECT count(*) FROM grants INDEXED BY grants_by_use
        WHERE state IN (\(GrantState.connectedList)) AND used_on <= ?1 / 86400000
            AND coalesce(last_success_at, created_at) < ?1 AND refresh_key IS NOT NULL
        """
    )
    static let countKeys = SQLiteQuery(
        "count keys",
        "SELECT refresh_key, access_key, count(*) FROM grants GROUP BY refresh_key, access_key"
    )
    /// The last id of the `?2` grants after the id `?1`, and their number.
    static let endOfPage = SQLiteQuery(
        "end of page",
        "SELECT max(id), count(*) FROM (SELECT id FROM grants WHERE id > ?1 ORDER BY id LIMIT ?2)"
    )
    /// Reschedules the grants after the id `?2`, up to the id `?3`.
    ///
    /// The spread is ``GrantID/phase`` of a minute, in whole numbers.
    static let reschedule = SQLiteQuery(
        "reschedule",
        """
        UPDATE grants SET due_at = ?1 + (((id >> 31) * 60000) >> 32), \(SQLiteGrantRow.increment)
        WHERE id > ?2 AND id <= ?3 AND due_at IS NOT NULL
            AND reason <> '\(GrantReason.invalidGrantUnconfirmed.rawValue)'
            AND (access_obtained_at > ?1 OR last_attempt_at > ?1)
        """
    )
}

extension SQLiteQuery {
    /// Sorted like the index by state, which ends with the id.
    ///
    /// `?4` is a cursor.
    static let expedite = SQLiteQuery(
        "expedite retries",
        """
        UPDATE grants SET due_at = ?2, \(SQLiteGrantRow.increment) WHERE id IN (
            SELECT id FROM grants INDEXED BY grants_by_state
            WHERE state = '\(GrantState.retrying.rawValue)' AND id > ?4 AND client_id = ?1 AND due_at > ?2
                AND reason NOT IN (\(GrantReason.awaitingConfirmation.sqlList))
            ORDER BY id LIMIT ?3
        ) RETURNING id
        """
    )
    static let expediteNotices = SQLiteQuery(
        "expedite notices",
        "UPDATE notices SET next_try_at = ?1 WHERE next_try_at > ?1"
    )
}

extension SQLiteStore {
    package func clientsWithDueTimes() async throws -> [String] {
        try await scanner.run { connection throws(StoreError) in try connection.dueClients() }
    }

    package func due(
        ofClient clientID: String,
        by limit: Timestamp,
        after cursor: DueEntry?,
        atMost count: Int
    ) async throws -> [DueEntry] {
        let count = max(0, count)
        return try await scanner.run { connection throws(StoreError) in
            let entries = { (query: SQLiteQuery, limit: Timestamp, count: Int, after: Int64?) throws(StoreError) in
                try connection.dueEntries(query, ofClient: clientID, by: limit, atMost: count, after: after)
            }
            guard let cursor else { return try entries(.due, limit, count, nil) }
            guard cursor.dueAt <= limit else { return [] }
            let first = try entries(.dueAtCursor, cursor.dueAt, count, cursor.id.rawValue)
            guard first.count < count else { return first }
            return first + (try entries(.dueAfterCursor, limit, count - first.count, cursor.dueAt.milliseconds))
        }
    }

    package func grantTally() async throws -> GrantTally? {
        try await scanner.run { connection throws(StoreError) in
            try connection.first(.tally) { (row: inout SQLiteRow) throws(StoreError) in
                GrantTally(counted: Int(row.integer()), recorded: Int(row.integer()))
            }
        }
    }

    package func grantStatistics(
        at now: Timestamp,
        refreshTokensEndingBefore end: Timestamp,
        idleSince: Timestamp
    ) async throws -> GrantStatistics {
        try await scanner.run { connection throws(StoreError) in
            try connection.read { () throws(StoreError) in
                var byState: [GrantState: Int] = [:]
                let counts = try connection.rows(.countByState) { (row: inout SQLiteRow) throws(StoreError) in
                    (state: GrantState(rawValue: row.text()), count: Int(row.integer()))
                }
                for (state, count) in counts {
                    if let state { byState[state] = count }
                }
                var expired = ExpiredGrants()
                let retries = try connection.sampleRetries(of: byState[.retrying] ?? 0, at: now)
                retries.add(to: &expired)
                var due: [(count: Int, oldest: Timestamp?)] = []
                for client in try connection.dueClients() {
                    let bind = { (statement: Statement) in
                        statement.bind(client)
                        statement.bind(now)
                    }
                    let part = try connection.rows(.countDue, bind: bind) { (row: inout SQLiteRow) throws(StoreError) in
                        (count: Int(row.integer()), oldest: row.timestamp())
                    }
                    due += part
                    let count = part.reduce(0) { $0 + $1.count }
                    try connection.addExpiredOverdue(of: count, client: client, at: now, to: &expired)
                }
                let count = { (query: SQLiteQuery, limit: Timestamp) throws(StoreError) -> Int in
                    try connection.first(query, bind: { $0.bind(limit) }) { (row: inout SQLiteRow) throws(StoreError) in
                        Int(row.integer())
                    } ?? 0
                }
                return GrantStatistics(
                    byState: byState,
                    due: due.reduce(0) { $0 + $1.count },
                    oldestDueAt: due.compactMap(\.oldest).min(),
                    refreshTokensEnding: try count(.countEnding, end),
                    idle: try count(.countIdle, idleSince),
                    expired: expired,
                    inDoubt: retries.inDoubt
                )
            }
        }
    }

    package func keysInUse() async throws -> [KeyID: Int] {
        try await scanner.run { connection throws(StoreError) in
            var keys: [KeyID: Int] = [:]
            let rows = try connection.rows(.countKeys) { (row: inout SQLiteRow) throws(StoreError) in
                (names: [row.optionalText(), row.optionalText()], count: Int(row.integer()))
            }
            for row in rows {
                for name in row.names.compactMap(\.self) {
                    guard let key = KeyID(name) else {
                        throw StoreError(damagedRow: "The key id of a grant")
                    }
                    keys[key, default: 0] += row.count
                }
            }
            return keys
        }
    }

    package func expediteRetries(
        ofClient clientID: String,
        dueBy: Timestamp,
        after cursor: GrantID?,
        atMost count: Int
    ) async throws -> GrantID? {
        try await writer.run { connection throws(StoreError) in
            try connection.write { () throws(StoreError) in
                let ids = try connection.rows(
                    .expedite,
                    bind: { statement in
                        statement.bind(clientID)
                        statement.bind(dueBy)
                        statement.bind(Int64(count))
                        statement.bind(cursor?.rawValue ?? -1)
                    },
                    read: { (row: inout SQLiteRow) throws(StoreError) in row.integer() }
                )
                return ids.count < count ? nil : ids.max().map { GrantID(rawValue: $0) }
            }
        }
    }

    package func rescheduleGrantsStoredAfter(_ now: Timestamp) async throws -> Int {
        let changed = try await changePages(after: Int64(-1)) { cursor in
            try await writer.run { connection throws(StoreError) in
                try connection.write { () throws(StoreError) in try connection.reschedulePage(after: cursor, now) }
            }
        }
        try await writer.run { connection throws(StoreError) in
            try connection.write { () throws(StoreError) in try connection.run(.expediteNotices) { $0.bind(now) } }
        }
        return changed
    }
}

extension SQLiteConnection {
    fileprivate func reschedulePage(
        after cursor: Int64,
        _ now: Timestamp
    ) throws(StoreError) -> ChangedPage<Int64> {
        let page = try first(
            .endOfPage,
            bind: {
                $0.bind(cursor)
                $0.bind(Int64(changedPageSize))
            },
            read: { (row: inout SQLiteRow) throws(StoreError) in (last: row.optionalInteger(), count: row.integer()) }
        )
        guard let page, let last = page.last else { return ChangedPage(changed: 0, next: nil) }
        try run(.reschedule) {
            $0.bind(now)
            $0.bind(cursor)
            $0.bind(last)
        }
        return ChangedPage(changed: changedRows, next: page.count == changedPageSize ? last : nil)
    }

    fileprivate func sampleRetries(of total: Int, at now: Timestamp) throws(StoreError) -> ExpiredGrants.Sample {
        var sample = ExpiredGrants.Sample(of: total)
        guard total > 0 else { return sample }
        for slice in sample.ranges {
            let parts = try rows(
                .countExpiredRetries,
                bind: { statement in
                    statement.bind(now)
                    statement.bind(slice.first)
                    statement.bind(slice.last)
                    statement.bind(Int64(slice.limit))
                },
                read: { (row: inout SQLiteRow) throws(StoreError) in
                    (
                        client: row.text(), count: Int(row.integer()), expired: Int(row.integer()),
                        at: row.timestamp(), inDoubt: Int(row.integer())
                    )
                }
            )
            for part in parts {
                sample.record(
                    part.count,
                    expired: part.expired,
                    oldest: part.at,
                    inDoubt: part.inDoubt,
                    client: part.client
                )
            }
        }
        return sample
    }

    fileprivate func addExpiredOverdue(
        of total: Int,
        client: String,
        at now: Timestamp,
        to expired: inout ExpiredGrants
    ) throws(StoreError) {
        guard total > 0 else { return }
        var sample = ExpiredGrants.Sample(of: total)
        let part = try first(
            .countExpiredOverdue,
            bind: { statement in
                statement.bind(client)
                statement.bind(now)
                statement.bind(Int64(ExpiredGrants.Sample.limit))
            },
            read: { (row: inout SQLiteRow) throws(StoreError) in
                (count: Int(row.integer()), expired: Int(row.integer()), oldest: row.timestamp())
            }
        )
        guard let part else { return }
        sample.record(part.count, expired: part.expired, oldest: part.oldest, client: client)
        sample.add(to: &expired)
    }

    fileprivate func dueClients() throws(StoreError) -> [String] {
        try rows(.dueClients) { (row: inout SQLiteRow) throws(StoreError) in row.text() }
    }

    fileprivate func dueEntries(
        _ query: SQLiteQuery,
        ofClient clientID: String,
        by limit: Timestamp,
        atMost count: Int,
        after lowerEnd: Int64?
    ) throws(StoreError) -> [DueEntry] {
        try rows(
            query,
            bind: { statement in
                statement.bind(clientID)
                statement.bind(limit)
                statement.bind(Int64(count))
                if let lowerEnd { statement.bind(lowerEnd) }
            },
            read: { (row: inout SQLiteRow) throws(StoreError) in
                DueEntry(dueAt: Timestamp(milliseconds: row.integer()), id: GrantID(rawValue: row.integer()))
            }
        )
    }
}

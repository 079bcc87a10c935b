package import Base
package import Crypto

extension PostgresQuery {
    private static let entries = "SELECT due_at, grant_id FROM refresh_worker.grant_schedule WHERE client_id = $1"

    /// Goes from client to client in the due index, without reading the grants of each.
    private static let clientsDue = """
        WITH RECURSIVE clients_due (client) AS (
            SELECT min(client_id) FROM refresh_worker.grant_schedule WHERE due_at IS NOT NULL
            UNION ALL
            SELECT (
                SELECT min(client_id) FROM refresh_worker.grant_schedule WHERE due_at IS NOT NULL AND client_id > client
            ) FROM clients_due WHERE client IS NOT NULL
        )
        """
    fileprivate static let dueClients = PostgresQuery(
        "clients with due times",
        "\(clientsDue) SELECT client FROM clients_due WHERE client IS NOT NULL"
    )
    fileprivate static let due = PostgresQuery("due", "\(entries) AND due_at <= $2 ORDER BY due_at, grant_id LIMIT $3")
    fileprivate static let dueAfter = PostgresQuery(
        "due after a cursor",
        """
        \(entries) AND due_at <= $2 AND (due_at, grant_id) > ($4::bigint, $5::bigint)
        ORDER BY due_at, grant_id LIMIT $3
        """
    )
    /// The overdue grants of each client: how many; and, among the longest overdue ones, those that have expired while
    /// `active`.
    static let overdue = PostgresQuery(
        "overdue",
        """
        \(clientsDue)
        SELECT clients_due.client, due.grants, due.oldest, sample.*
        FROM clients_due, LATERAL (
            SELECT count(*) AS grants, min(due_at) AS oldest FROM refresh_worker.grant_schedule
            WHERE client_id = clients_due.client AND due_at <= $1
        ) AS due, LATERAL (
            SELECT count(*), count(*) FILTER (WHERE is_active AND expired_at <= $1),
                min(expired_at) FILTER (WHERE is_active)
            FROM (
                SELECT g.state = '\(GrantState.active.rawValue)' AS is_active,
                    coalesce(g.access_expires_at, g.since) AS expired_at
                FROM (
                    SELECT grant_id FROM refresh_worker.grant_schedule
                    WHERE client_id = clients_due.client AND due_at <= $1 ORDER BY due_at, grant_id LIMIT $2
                ) AS s JOIN refresh_worker.grants AS g ON g.id = s.grant_id
            ) AS part
        ) AS sample
        WHERE clients_due.client IS NOT NULL
        """
    )
    /// The expired grants, and those in doubt, among the `retrying` ones of a range of ids; see
    /// `ExpiredGrants.Sample`.
    static let expiredRetries = PostgresQuery(
        "expired retries",
        """
        SELECT client_id, count(*), count(*) FILTER (WHERE expired_at <= $1), min(expired_at),
            count(*) FILTER (WHERE reason = '\(GrantReason.invalidGrantUnconfirmed.rawValue)')
        FROM (
            SELECT client_id, coalesce(access_expires_at, since) AS expired_at, reason FROM refresh_worker.grants
            WHERE state = '\(GrantState.retrying.rawValue)' AND id >= $2 AND id <= $3 ORDER BY id LIMIT $4
        ) AS part GROUP BY client_id
        """
    )
    fileprivate static let ending = PostgresQuery(
        "ending and idle",
        """
        SELECT
            (SELECT count(*) FROM refresh_worker.grants
                WHERE refresh_expires_at < $1 AND state IN (\(GrantState.connectedList))),
            (SELECT count(*) FROM refresh_worker.grants
                WHERE used_on <= $3 AND state IN (\(GrantState.connectedList)) AND refresh_token IS NOT NULL
                    AND coalesce(last_success_at, created_at) < $2)
        """
    )
    fileprivate static let counts = PostgresQuery(
        "counts of states",
        "SELECT state, grants FROM refresh_worker.grant_counts"
    )
    /// A grant cannot be removed without its row in the schedule, which is much narrower.
    fileprivate static let tally = PostgresQuery(
        "tally of grants",
        """
        SELECT (SELECT count(*) FROM refresh_worker.grant_schedule),
            (SELECT coalesce(sum(grants), 0)::bigint FROM refresh_worker.grant_counts)
        """
    )
    fileprivate static let countKeys = PostgresQuery(
        "count keys",
        "SELECT refresh_key, access_key, count(*) FROM refresh_worker.grants GROUP BY refresh_key, access_key"
    )
    /// Reschedules among the `$3` grants after the id `$2`; returns the number of changed grants, and the last id if
    /// there may be more.
    ///
    /// The spread is ``GrantID/phase`` of a minute, in whole numbers.
    fileprivate static let reschedule = PostgresQuery(
        "reschedule",
        """
        WITH page AS MATERIALIZED (
            SELECT id FROM refresh_worker.grants WHERE id > $2 ORDER BY id LIMIT $3
        ), changed AS (
            UPDATE refresh_worker.grant_schedule AS s SET due_at = $1 + (((g.id >> 31) * 60000) >> 32)
            FROM page JOIN refresh_worker.grants AS g ON g.id = page.id
            WHERE g.id = s.grant_id AND s.due_at IS NOT NULL
                AND g.reason <> '\(GrantReason.invalidGrantUnconfirmed.rawValue)'
                AND (g.access_obtained_at > $1 OR g.last_attempt_at > $1)
            RETURNING 1
        )
        SELECT (SELECT count(*) FROM changed), CASE WHEN count(*) = $3 THEN max(id) END FROM page
        """
    )
    /// Rows that a result is being stored in are left out: they get a due time of their own.
    ///
    /// Both rows are locked: only a locked row is read again if another transaction has changed it since the snapshot,
    /// and the grant's reason must be the latest.
    fileprivate static let expedite = PostgresQuery(
        "expedite retries",
        """
        WITH part AS MATERIALIZED (
            SELECT g.id FROM refresh_worker.grants AS g JOIN refresh_worker.grant_schedule AS s ON s.grant_id = g.id
            WHERE g.state = '\(GrantState.retrying.rawValue)' AND g.id > $4 AND g.client_id = $1 AND s.due_at > $2
                AND g.reason NOT IN (\(GrantReason.awaitingConfirmation.sqlList))
            ORDER BY g.id LIMIT $3 FOR UPDATE OF s, g SKIP LOCKED
        )
        UPDATE refresh_worker.grant_schedule AS s SET due_at = $2 FROM part WHERE s.grant_id = part.id
        RETURNING s.grant_id
        """
    )
    fileprivate static let expediteNotices = PostgresQuery(
        "expedite notices",
        "UPDATE refresh_worker.notices SET next_try_at = $1 WHERE next_try_at > $1"
    )
}

extension PostgresStore {
    /// The timeout for queries that read a whole table: ten million rows take a while.
    private static let scanTimeout: Duration = .seconds(300)

    package func clientsWithDueTimes() async throws -> [String] {
        try await scanner.rows(.dueClients) { (row: inout PostgresRow) throws(StatementFailure) in row.text() }
    }

    package func due(
        ofClient clientID: String,
        by limit: Timestamp,
        after cursor: DueEntry?,
        atMost count: Int
    ) async throws -> [DueEntry] {
        try await scanner.rows(
            cursor == nil ? .due : .dueAfter,
            bind: { parameters in
                parameters.bind(clientID)
                parameters.bind(limit)
                parameters.bind(Int64(max(0, count)))
                if let cursor {
                    parameters.bind(cursor.dueAt)
                    parameters.bind(cursor.id.rawValue)
                }
            },
            read: { (row: inout PostgresRow) throws(StatementFailure) in
                DueEntry(dueAt: Timestamp(milliseconds: row.integer()), id: GrantID(rawValue: row.integer()))
            }
        )
    }

    package func grantTally() async throws -> GrantTally? {
        try await scanner.first(.tally) { (row: inout PostgresRow) throws(StatementFailure) in
            GrantTally(counted: Int(row.integer()), recorded: Int(row.integer()))
        }
    }

    package func grantStatistics(
        at now: Timestamp,
        refreshTokensEndingBefore end: Timestamp,
        idleSince: Timestamp
    ) async throws -> GrantStatistics {
        try await scanner.run { connection, deadline throws(StatementFailure) in
            var batch = StatementBatch(queryUntil: deadline)
            let counts = batch.add(.counts)
            let overdue = batch.add(.overdue) {
                $0.bind(now)
                $0.bind(Int64(ExpiredGrants.Sample.limit))
            }
            let ending = batch.add(.ending) {
                $0.bind(end)
                $0.bind(idleSince)
                $0.bind(idleSince.day)
            }
            let results = try connection.run(batch, until: deadline)
            var statistics = GrantStatistics(byState: [:], due: 0, oldestDueAt: nil, refreshTokensEnding: 0, idle: 0)
            _ = try results[counts].rows { (row: inout PostgresRow) throws(StatementFailure) in
                guard let state = GrantState(rawValue: row.text()) else { return }
                let count = Int(row.integer())
                if count != 0 { statistics.byState[state] = count }
            }
            _ = try results[overdue].rows { (row: inout PostgresRow) throws(StatementFailure) in
                let client = row.text()
                let count = Int(row.integer())
                statistics.due += count
                statistics.oldestDueAt = [statistics.oldestDueAt, row.timestamp()].compactMap(\.self).min()
                var sample = ExpiredGrants.Sample(of: count)
                let (examined, expired) = (Int(row.integer()), Int(row.integer()))
                sample.record(examined, expired: expired, oldest: row.timestamp(), client: client)
                sample.add(to: &statistics.expired)
            }
            _ = try results[ending].first { (row: inout PostgresRow) throws(StatementFailure) in
                statistics.refreshTokensEnding = Int(row.integer())
                statistics.idle = Int(row.integer())
            }
            let retrying = statistics.byState[.retrying] ?? 0
            guard retrying > 0 else { return statistics }
            var sample = ExpiredGrants.Sample(of: retrying)
            var retries = StatementBatch(queryUntil: deadline)
            let positions = sample.ranges.map { slice in
                retries.add(.expiredRetries) {
                    $0.bind(now)
                    $0.bind(slice.first)
                    $0.bind(slice.last)
                    $0.bind(Int64(slice.limit))
                }
            }
            let parts = try connection.run(retries, until: deadline)
            for position in positions {
                _ = try parts[position].rows { (row: inout PostgresRow) throws(StatementFailure) in
                    let client = row.text()
                    let (examined, expired) = (Int(row.integer()), Int(row.integer()))
                    let oldest = row.timestamp()
                    sample.record(
                        examined,
                        expired: expired,
                        oldest: oldest,
                        inDoubt: Int(row.integer()),
                        client: client
                    )
                }
            }
            sample.add(to: &statistics.expired)
            statistics.inDoubt = sample.inDoubt
            return statistics
        }
    }

    package func keysInUse() async throws -> [KeyID: Int] {
        let rows = try await scanner.rows(.countKeys, timeout: Self.scanTimeout) {
            (row: inout PostgresRow) throws(StatementFailure) in
            (names: [row.optionalText(), row.optionalText()], count: Int(row.integer()))
        }
        var keys: [KeyID: Int] = [:]
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

    package func expediteRetries(
        ofClient clientID: String,
        dueBy: Timestamp,
        after cursor: GrantID?,
        atMost count: Int
    ) async throws -> GrantID? {
        try await writer.run { [self] connection, deadline throws(StatementFailure) in
            var batch = changes(until: deadline, on: connection)
            let position = batch.add(.expedite) {
                $0.bind(clientID)
                $0.bind(dueBy)
                $0.bind(Int64(count))
                $0.bind(cursor?.rawValue ?? -1)
            }
            let ids = try commit(batch, isRepeatable: true, on: connection, until: deadline)[position]
                .rows { (row: inout PostgresRow) throws(StatementFailure) in row.integer() }
            return ids.count < count ? nil : ids.max().map { GrantID(rawValue: $0) }
        }
    }

    package func rescheduleGrantsStoredAfter(_ now: Timestamp) async throws -> Int {
        let changed = try await changePages(after: Int64(-1)) { [self] cursor in
            try await writer.run { [self] connection, deadline throws(StatementFailure) in
                var batch = changes(until: deadline, on: connection)
                batch.addWriterLock()
                let position = batch.add(.reschedule) {
                    $0.bind(now)
                    $0.bind(cursor)
                    $0.bind(Int64(changedPageSize))
                }
                let page = try commit(batch, isRepeatable: true, on: connection, until: deadline)[position]
                    .first { (row: inout PostgresRow) throws(StatementFailure) in
                        ChangedPage(changed: Int(row.integer()), next: row.optionalInteger())
                    }
                return page ?? ChangedPage(changed: 0, next: nil)
            }
        }
        try await writer.run { [self] connection, deadline throws(StatementFailure) in
            var batch = changes(until: deadline, on: connection)
            batch.addWriterLock()
            batch.add(.expediteNotices) { $0.bind(now) }
            _ = try commit(batch, isRepeatable: true, on: connection, until: deadline)
        }
        return changed
    }
}

import Base

/// The statements about due grants, for one database: PostgreSQL has due times in a table of their own.
struct ScanQueries: Sendable {
    /// Goes from client to client in the due index, without reading the grants of each.
    ///
    /// It goes from the last one to the first, because the end of each client's part is in the future. Its beginning is
    /// full of dead entries on PostgreSQL while a transaction is old.
    let dueClients: SQLQuery
    let countDue: SQLQuery
    /// Counts the expired grants among the longest overdue ones of a client that are `active`.
    let countExpiredOverdue: SQLQuery
    /// The number of grants, as counted and as recorded, and that of connected ones without a due time, which only
    /// PostgreSQL counts: on SQLite it would read all grants.
    let tally: SQLQuery
    /// Makes the retries of the client `$1` due by `$2`, at most `$3` after the id `$4`, and returns their ids.
    let expedite: SQLQuery
    /// Makes the grants after the id `$2`, up to the id `$3`, due at `$1` if they were stored or tried later.
    let reschedule: SQLQuery
    /// Makes the doubts of at most `$4` grants after the id `$3` begin at `$1`, with a confirmation at `$2`, and returns
    /// their ids and clients.
    let restartDoubts: SQLQuery

    /// `due` is the table with the due times, and `overdue` the source of the columns of a client's overdue grants.
    init(
        due: String,
        overdue: String,
        tally: String,
        expedite: String,
        reschedule: (_ due: String) -> String,
        restartDoubts: (_ due: String) -> String
    ) {
        // Not max(client_id): if PostgreSQL takes the table for nearly empty, it computes that from all entries.
        let last = { (condition: String) in
            """
            SELECT (
                SELECT client_id FROM refresh_worker.\(due) WHERE due_at IS NOT NULL\(condition)
                ORDER BY client_id DESC, due_at DESC LIMIT 1
            )
            """
        }
        dueClients = SQLQuery(
            "clients with due times",
            sql: """
                WITH RECURSIVE clients_due (client) AS (
                    \(last(""))
                    UNION ALL
                    \(last(" AND client_id < client")) FROM clients_due WHERE client IS NOT NULL
                )
                SELECT client FROM clients_due WHERE client IS NOT NULL ORDER BY client
                """
        )
        countDue = SQLQuery(
            "count due",
            sql: "SELECT count(*), min(due_at) FROM refresh_worker.\(due) WHERE client_id = $1 AND due_at <= $2"
        )
        countExpiredOverdue = SQLQuery(
            "count expired and overdue",
            sql: """
                SELECT count(*), count(*) FILTER (WHERE is_active AND expired_at <= $2),
                    min(expired_at) FILTER (WHERE is_active)
                FROM (
                    SELECT state = '\(GrantState.active.rawValue)' AS is_active,
                        coalesce(access_expires_at, since) AS expired_at
                    FROM \(overdue)
                ) AS part
                """
        )
        self.tally = SQLQuery("tally of grants", sql: tally)
        self.expedite = SQLQuery("expedite retries", sql: expedite)
        self.reschedule = SQLQuery("reschedule", sql: reschedule("$1 + \(Self.spread)"))
        self.restartDoubts = SQLQuery("restart doubts", sql: restartDoubts("$2 + \(Self.spread)"))
    }

    /// The grants that ``expedite`` changes.
    static let isPassingRetry = """
        state = '\(GrantState.retrying.rawValue)' AND id > $4
            AND reason NOT IN (\(GrantReason.unconfirmedReasons.sqlList))
        """
    /// The grants that ``reschedule`` changes. Those in doubt are left to ``restartDoubts``.
    static let isOfTheFuture = """
        id > $2 AND id <= $3 AND due_at IS NOT NULL AND NOT \(isInDoubt)
            AND (access_obtained_at > $1 OR last_attempt_at > $1)
        """
    /// ``Grant/isInDoubt``. The states come first: the indexes by state have few rows of these two.
    static let isInDoubt = """
        (
            state = '\(GrantState.retrying.rawValue)' AND reason IN (\(GrantReason.inDoubt.sqlList))
            OR state = '\(GrantState.suspended.rawValue)' AND suspected_since IS NOT NULL
        )
        """
    /// The grants that ``restartDoubts`` changes.
    static let isDoubtToRestart = """
        state IN ('\(GrantState.retrying.rawValue)', '\(GrantState.suspended.rawValue)') AND id > $3 AND \(isInDoubt)
        """
    /// A random fraction of a minute for each grant: its ``GrantID/phase``, in whole numbers.
    fileprivate static let spread = "(((id >> 31) * 60000) >> 32)"
}

extension DueEntry {
    static func read(_ row: inout some SQLRow) -> DueEntry {
        DueEntry(dueAt: row.time(), id: GrantID(rawValue: row.integer()))
    }
}

extension SQLQuery {
    static let countByState = grantCounts.select("count by state", "WHERE grants > 0")
    /// Counts the `retrying` grants of a range of ids by client id and reason, and the expired ones among them, as
    /// `ExpiredGrants.Sample` explains.
    static let countExpiredRetries = SQLQuery(
        "count expired retries",
        sql: """
            SELECT client_id, count(*), count(*) FILTER (WHERE expired_at <= $1), min(expired_at), reason
            FROM (
                SELECT client_id, coalesce(access_expires_at, since) AS expired_at, reason
                FROM refresh_worker.grants /* INDEXED BY grants_by_state */
                WHERE state = '\(GrantState.retrying.rawValue)' AND id >= $2 AND id <= $3 ORDER BY id LIMIT $4
            ) AS part GROUP BY client_id, reason
            """
    )
    static let countEnding = SQLQuery(
        "count ending",
        sql: """
            SELECT count(*) FROM refresh_worker.grants /* INDEXED BY grants_by_ending */
            WHERE refresh_expires_at < $1 AND state IN (\(GrantState.connectedList))
            """
    )
    static let unannounced = SQLQuery(
        "ending tokens to announce",
        sql: """
            SELECT id FROM refresh_worker.grants /* INDEXED BY grants_by_ending */
            WHERE refresh_expires_at > $1 AND refresh_expires_at <= $2 AND state IN (\(GrantState.connectedList))
                AND NOT expiry_noticed
            ORDER BY refresh_expires_at LIMIT $3
            """
    )
    static let countIdle = SQLQuery(
        "count idle",
        sql: """
            SELECT count(*) FROM refresh_worker.grants /* INDEXED BY grants_by_use */
            WHERE state IN (\(GrantState.connectedList)) AND used_on <= $2
                AND coalesce(last_success_at, created_at) < $1 AND refresh_key IS NOT NULL
            """
    )
    /// The last id of the `$2` grants after the id `$1`, and their number.
    static let endOfPage = SQLQuery(
        "end of page",
        sql: """
            SELECT max(id), count(*) FROM (
                SELECT id FROM refresh_worker.grants WHERE id > $1 ORDER BY id LIMIT $2
            ) AS part
            """
    )
}

extension SQLStore {
    package func clientsWithDueTimes() async throws -> [String] {
        try await rows(SQLStatement(Self.scanQueries.dueClients), by: .scan) { $0.text() }
    }

    package func grantRowProblem() async throws -> String? {
        let tally = try await first(SQLStatement(Self.scanQueries.tally), by: .survey) { row in
            (counted: row.count(), recorded: row.count(), withoutDueTime: row.count())
        }
        guard let (counted, recorded, withoutDueTime) = tally else { return nil }
        if counted == recorded, withoutDueTime > 0 {
            return """
                \(withoutDueTime) connected grants in the database have no due time, so they are not refreshed: something \
                else changed its rows
                """
        }
        guard counted != recorded else { return nil }
        return """
            \(counted) grants are in the database, and \(recorded) were stored there: something else changed its rows. Grants \
            that are gone are not refreshed
            """
    }

    package func unannounced(endingBy end: Timestamp, at now: Timestamp, atMost count: Int) async throws -> [GrantID] {
        try await rows(SQLStatement(.unannounced, .time(now), .time(end), .limit(count)), by: .scan) {
            GrantID(rawValue: $0.integer())
        }
    }

    package func expediteRetries(
        ofClient clientID: String,
        dueBy: Timestamp,
        after cursor: GrantID?,
        atMost count: Int
    ) async throws -> GrantID? {
        let ids = try await change(
            [
                SQLStatement(
                    Self.scanQueries.expedite,
                    .text(clientID),
                    .time(dueBy),
                    .limit(count),
                    .integer(cursor?.rawValue ?? -1)
                )
            ],
            [.long, .repeatable]
        ) { $0.integer() }.last
        return ids.count < count ? nil : ids.max().map { GrantID(rawValue: $0) }
    }

    package func rescheduleGrantsStoredAfter(_ now: Timestamp) async throws -> Int {
        try await rescheduleGrants(storedAfter: now, pageSize: changedPageSize)
    }

    func rescheduleGrants(storedAfter now: Timestamp, pageSize: Int) async throws -> Int {
        let options: SQLChangeOptions = [.exclusive, .repeatable]
        let changed = try await changePages(after: Int64(-1)) { cursor in
            let end = try await first(
                SQLStatement(.endOfPage, .integer(cursor), .limit(pageSize)),
                by: .scan
            ) { (last: $0.optionalInteger(), count: $0.count()) }
            guard let end, let last = end.last else { return (0, nil) }
            let changed = try await change(
                [SQLStatement(Self.scanQueries.reschedule, .time(now), .integer(cursor), .integer(last))],
                options
            )
            return (changed[0], end.count == pageSize ? last : nil)
        }
        try await change([SQLStatement(.expediteNotices, .time(now))], options)
        return changed
    }

    package func restartDoubts(at now: Timestamp, confirmingAt dueAt: Timestamp) async throws -> Set<String> {
        var clients: Set<String> = []
        try await changePages(after: Int64(-1)) { cursor in
            let page = try await change(
                [
                    SQLStatement(
                        Self.scanQueries.restartDoubts,
                        .time(now),
                        .time(dueAt),
                        .integer(cursor),
                        .limit(changedPageSize)
                    )
                ],
                [.exclusive, .repeatable]
            ) { (id: $0.integer(), client: $0.text()) }.last
            for row in page { clients.insert(row.client) }
            return (page.count, page.count == changedPageSize ? page.map(\.id).max() : nil)
        }
        return clients
    }

    package func grantStatistics(
        at now: Timestamp,
        refreshTokensEndingBefore end: Timestamp,
        idleSince: Timestamp
    ) async throws -> GrantStatistics {
        var statistics = GrantStatistics()
        var clients: [String] = []
        let counts = try await rows(
            [
                SQLStatement(Self.scanQueries.dueClients), SQLStatement(.countByState),
                SQLStatement(.countEnding, .time(end)),
                SQLStatement(.countEnding, .time(min(end, now + .seconds(86_400)))),
                SQLStatement(.countIdle, .time(idleSince), .integer(idleSince.day)),
            ],
            by: .survey
        ) { index, row in
            let text = index < 2 ? row.text() : ""
            return (statement: index, text: text, count: index > 0 ? row.count() : 0)
        }
        for (statement, text, count) in counts {
            switch statement {
            case 0: clients.append(text)
            case 1: if let state = GrantState(rawValue: text) { statistics.byState[state] = count }
            case 2: statistics.refreshTokensEnding = count
            case 3: statistics.refreshTokensEndingWithinDay = count
            default: statistics.idle = count
            }
        }
        try await add(samplesOf: clients, at: now, to: &statistics)
        statistics.consentEnds = try await consentEnds(at: now)
        return statistics
    }

    /// Adds what samples of the overdue grants of each client, and of all retries, show.
    private func add(
        samplesOf clients: [String],
        at now: Timestamp,
        to statistics: inout GrantStatistics
    ) async throws {
        let retrying = statistics.byState[.retrying] ?? 0
        var retries = ExpiredGrants.Sample(total: retrying)
        var questions = clients.flatMap { [SampleQuestion.due(client: $0), .expiredOverdue(client: $0)] }
        if retrying > 0 {
            questions += retries.ranges.map { .retries(first: $0.first, last: $0.last, limit: $0.limit) }
        }
        guard !questions.isEmpty else { return }
        let statements = questions.map { $0.statement(at: now, queries: Self.scanQueries) }
        let samples = try await rows(statements, by: .survey) { [questions] index, row in
            questions[index].read(&row)
        }
        var due = 0
        for sample in samples {
            switch sample.question {
            case .due:
                due = sample.count
                statistics.due += sample.count
                statistics.oldestDueAt = [statistics.oldestDueAt, sample.oldest].compactMap(\.self).min()
            case .expiredOverdue(let client):
                var overdue = ExpiredGrants.Sample(total: due)
                overdue.record(sample.count, expired: sample.expired, oldest: sample.oldest, client: client)
                overdue.add(to: &statistics.expired)
            case .retries:
                retries.record(
                    sample.count,
                    expired: sample.expired,
                    oldest: sample.oldest,
                    reason: sample.reason,
                    client: sample.client
                )
            }
        }
        retries.add(to: &statistics.expired)
        statistics.inDoubt = retries.inDoubt
        statistics.retryingReasons = retries.reasons
    }
}

/// Grants that one part of a long change reads: other writers wait for some hundredths of a second.
let changedPageSize = 5_000

/// Runs a long change part by part, each in a transaction of its own, so that other writers do not wait for all of it.
///
/// Returns the number of changed rows.
///
/// `change` gets the position after which its part begins, and returns the next one, or `nil` at the end.
/// It ends early if its task is cancelled.
@discardableResult
package func changePages<Cursor: Sendable>(
    after first: Cursor,
    _ change: (Cursor) async throws -> (changed: Int, next: Cursor?)
) async throws -> Int {
    var changed = 0
    var cursor: Cursor? = first
    while let position = cursor, !Task.isCancelled {
        let page = try await change(position)
        changed += page.changed
        cursor = page.next
    }
    return changed
}

import Base

extension SQLQuery {
    fileprivate static let acceptsWrites = SQLQuery(
        "checking that writes are accepted",
        sql: "SELECT NOT current_setting('transaction_read_only')::boolean FROM refresh_worker.schema_version"
    )
    /// Conflicts with every lock that would keep results from being stored, and writes nothing.
    fileprivate static let lockTables = SQLQuery(
        "checking that tables are not locked",
        sql: """
            LOCK TABLE refresh_worker.grants, refresh_worker.grant_schedule, refresh_worker.grant_events,
                refresh_worker.grant_counts, refresh_worker.clients, refresh_worker.client_successes IN ROW EXCLUSIVE MODE
            """
    )
}

extension PostgresStore {
    static let grantQueries = PostgresGrantRow.queries
    static let lastLease = SQLQuery(
        "last lease",
        sql: "SELECT max(lease_until) FROM refresh_worker.grant_schedule WHERE lease_epoch = $1"
    )
    /// A writer at the same time either finishes before the note, or sees it: see the use check.
    var beforeMove: [SQLStatement] { [SQLStatement(.takeLock, .integer(address.schema.moveLock))] }
    static let schemaVersion = PostgresSchema.readVersion

    /// In one statement: PostgreSQL checks the foreign keys at its end.
    static let removeTombstones = [
        SQLQuery(
            "remove deleted users",
            sql: """
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
    ]

    /// The time for a query that reads a whole table: the server takes a while for ten million rows.
    private static let wholeTableTimeout: Duration = .seconds(900)
    /// The time for a query that steps over the dead entries of the due index: millions, while a transaction is old.
    private static let surveyTimeout: Duration = .seconds(60)

    var databaseName: String { "\(address)".capitalizedFirst }

    func rows<Element: Sendable>(
        _ statements: [SQLStatement],
        by reader: SQLReader,
        _ read: @escaping @Sendable (_ position: Int, _ row: inout PostgresRow) throws(StoreError) -> Element
    ) async throws(StoreError) -> [Element] {
        try await rows(statements, by: reader, endingAfter: nil, read)
    }

    /// Runs queries of which the server ends each after a limit, which can be shorter than the wait for the connection.
    func rows<Element: Sendable>(
        _ statements: [SQLStatement],
        by reader: SQLReader,
        endingAfter limit: Duration?,
        _ read: @escaping @Sendable (_ position: Int, _ row: inout PostgresRow) throws(StoreError) -> Element
    ) async throws(StoreError) -> [Element] {
        let (queue, timeout): (PostgresConnectionQueue, Duration?) =
            switch reader {
            case .single: (self.reader, nil)
            case .scan: (scanner, nil)
            case .survey: (surveyor, Self.surveyTimeout)
            case .wholeTable: (scanner, Self.wholeTableTimeout)
            }
        return try await queue.run(timeout: timeout) { connection, deadline throws(StoreError) in
            var batch = StatementBatch(queryUntil: deadline, endingAfter: limit)
            let first = batch.entries.count
            for statement in statements { batch.add(statement) }
            var elements: [Element] = []
            for (position, result) in try connection.run(batch, until: deadline).dropFirst(first).enumerated() {
                elements += try result.rows { row throws(StoreError) in try read(position, &row) }
            }
            return elements
        }
    }

    func change<Element: Sendable>(
        _ statements: [SQLStatement],
        _ options: SQLChangeOptions,
        _ read: @escaping @Sendable (inout PostgresRow) throws(StoreError) -> Element
    ) async throws(StoreError) -> (changed: [Int], last: [Element]) {
        let queue = options.isDisjoint(with: [.exclusive, .long]) ? leasing : writer
        return try await queue.run { [self] connection, deadline throws(StoreError) in
            var batch = StatementBatch(until: deadline)
            if !options.contains(.evenIfMoved) { addUseCheck(to: &batch, on: connection) }
            if options.contains(.exclusive) { batch.addWriterLock(of: address.schema) }
            let first = batch.entries.count
            for statement in statements { batch.add(statement) }
            batch.add(.clock)
            let isRepeatable = options.contains(.repeatable)
            let results = try commit(batch, isRepeatable: isRepeatable, on: connection, until: deadline)
                .dropFirst(first).prefix(statements.count)
            return (results.map(\.changedRows), try results.last?.rows(read) ?? [])
        }
    }

    static let allOfGrants = PostgresGrantRow.selectAll

    static func restore(_ rows: [[SQLValue]], of kind: ArchiveRecord.Kind) -> [SQLStatement] {
        guard !rows.isEmpty else { return [] }
        guard kind != .grant else { return PostgresGrantRow.restore(rows) }
        return [SQLStatement(kind.table.insertMany("restore \(kind.rawValue)"), kind.table.arrays(of: rows))]
    }

    package func report(_ worker: WorkerReport) async throws -> [WorkerReport] {
        connector.surveyIfDue()
        let unrecorded = newestServer.unrecorded
        let unrecordedDatabase = newestServer.unrecordedDatabase
        var notes: [SQLStatement] = []
        if let unrecorded {
            notes.append(SQLStatement(.recordServer, .text(unrecorded.system), .integer(unrecorded.timeline)))
        }
        if let unrecordedDatabase { notes.append(SQLStatement(.recordDatabase, .text("\(unrecordedDatabase)"))) }
        do {
            let reports = try await store(worker, with: notes)
            if let unrecorded { newestServer.markRecorded(unrecorded) }
            if unrecordedDatabase != nil { newestServer.markDatabaseRecorded() }
            return reports
        } catch let error as StoreError where error.code == .moved {
            try await removeWorker(worker.id)
            throw error
        }
    }

    /// How long the check can take: a caller of `/readyz` waits for it.
    private static let checkTimeout: Duration = .milliseconds(2_500)

    /// Takes the locks of a transaction that stores results, and writes nothing, since it is called every few seconds.
    package func checkUsable() async throws {
        do {
            try await checkAcceptsWrites()
        } catch let error as StoreError where error.code == .readOnly {
            // A session that began while the server was read-only stays read-only. It is closed now, and a new one
            // shows the current state.
            try await checkAcceptsWrites()
        }
    }

    private func checkAcceptsWrites() async throws {
        try await checking.run(timeout: Self.checkTimeout) { [self] connection, deadline throws(StoreError) in
            var batch = StatementBatch(until: deadline)
            let position = batch.add(.acceptsWrites)
            batch.addWriterLock(of: address.schema)
            addUseCheck(to: &batch, on: connection)
            batch.add(.lockTables)
            batch.add(.rollback)
            let acceptsWrites: Bool?
            do throws(StoreError) {
                acceptsWrites = try run(batch, on: connection, until: deadline)[position].first { $0.flag() }
            } catch {
                throw rollBack(after: error, on: connection, until: deadline)
            }
            guard acceptsWrites == true else {
                // The server's own code for a refused write.
                throw StoreError(
                    state: "25006",
                    detail: "it is read-only",
                    database: connection.database,
                    during: SQLQuery.acceptsWrites.name
                )
            }
        }
    }
}

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
                (SELECT coalesce(sum(grants), 0)::bigint FROM refresh_worker.grant_counts),
                (
                    SELECT count(*) FROM refresh_worker.grant_schedule AS s
                    WHERE due_at IS NULL AND NOT EXISTS (
                        SELECT 1 FROM refresh_worker.grants
                        WHERE id = s.grant_id AND state IN (\(GrantState.refreshEndingList))
                    )
                )
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
        },
        restartDoubts: { due in
            """
            WITH part AS MATERIALIZED (
                SELECT id FROM refresh_worker.grants WHERE \(ScanQueries.isDoubtToRestart) ORDER BY id LIMIT $4
            ), doubted AS (
                UPDATE refresh_worker.grants AS g SET suspected_since = $1, \(Grant.increment) FROM part
                WHERE g.id = part.id AND \(ScanQueries.isInDoubt) RETURNING g.id, g.client_id
            ), moved AS (
                UPDATE refresh_worker.grant_schedule AS s SET due_at = \(due) FROM doubted WHERE s.grant_id = doubted.id
            )
            SELECT id, client_id FROM doubted
            """
        }
    )
}

package import Base
import Synchronization

/// Grants, users and sessions in a PostgreSQL database that any number of workers share.
///
/// Each of a few connections has a queue of its own: one for the results of refreshes, one for all other transactions,
/// one for leases and other short writes, two for reads of single grants, one for scans, one for statistics, and one
/// for the readiness check. So a result does not wait behind requests from outside, and a caller that waits for a token
/// does not wait behind a scan. A connection is opened when a call needs it, and again after it was lost.
///
/// An advisory lock allows one transaction at a time, over all workers: those that decide by the health of a client
/// must see each other's answers. Claims and plain refreshes do not take the lock. Claims skip the rows that a
/// transaction has locked. Plain refreshes wait for such rows, and are not stored if their grants have changed.
package final class PostgresStore: SQLStore {
    /// The database's time, for due times and expiries that several machines share.
    let clock: DatabaseClock
    package let bootID: String
    let address: DatabaseAddress
    let random: any RandomSource
    let local: any TimeSource
    /// Replaces the database's clock in tests.
    let leaseClock: (any TimeSource)?
    let keepsNotices: Bool
    /// Transactions of routes and commands.
    let writer: PostgresConnectionQueue
    /// Transactions that store Google's answers: no request from outside delays them.
    let results: PostgresConnectionQueue
    let leasing: PostgresConnectionQueue
    /// The check that results can be stored: in a queue with other calls it would wait as long as they do.
    let checking: PostgresConnectionQueue
    let scanner: PostgresConnectionQueue
    /// Statistics, and full looks at the due index: the scan does not wait for them.
    let surveyor: PostgresConnectionQueue
    private let readers: [PostgresConnectionQueue]
    /// Ends the streams of changes, or `nil` once the store is closed.
    let listeners = Mutex<[@Sendable () -> Void]?>([])
    let connector: Connector
    let newestServer: NewestServer
    let incidents = IncidentLog()
    /// The marks of the clients whose scans are slow.
    let dueMarks = Mutex<[String: DueMark]>([:])
    let slowScan: Duration
    let scanLimit: Duration

    package func pendingIncidents() -> [StoreIncident] { incidents.pending }

    package func takeIncidents() -> [StoreIncident] { incidents.take() }

    /// Connects and brings the schema up to date, or throws if that does not succeed within `timeout`.
    ///
    /// `clock` can be in use already. `timeout` is the time that a call can take before it fails with
    /// ``StoreError/Code/unreachable`` or ``StoreError/Code/busy``. `keepsNotices` is `true` if events that concern the
    /// backend go to the outbox. `leaseClock` replaces the database's clock in tests. After a scan that takes longer
    /// than
    /// `slowScan` the next ones begin at a mark. A scan that takes `scanLimit` is given up. The server ends a transaction
    /// that waits for its next statement for `idleLimit`.
    package init(
        at address: DatabaseAddress,
        clock: DatabaseClock,
        random: any RandomSource = SystemRandom(),
        timeout: Duration = .seconds(10),
        keepsNotices: Bool = false,
        leaseClock: (any TimeSource)? = nil,
        slowScan: Duration = DueMark.slowScan,
        scanLimit: Duration = DueMark.limit,
        idleLimit: Duration = CallDeadline.idleLimit
    ) async throws(StoreError) {
        bootID = try SystemTime.requireBootID()
        self.address = address
        self.clock = clock
        local = clock.local
        self.random = random
        self.keepsNotices = keepsNotices
        self.leaseClock = leaseClock
        self.slowScan = slowScan
        self.scanLimit = scanLimit
        newestServer = NewestServer(incidents: incidents)
        connector = Connector(to: address, newestServer: newestServer)
        let queue = { [connector] (name: String) in
            PostgresConnectionQueue(
                to: connector,
                label: "postgres.\(name)",
                timeout: timeout,
                idleLimit: idleLimit,
                random: random
            )
        }
        writer = queue("writer")
        results = queue("results")
        leasing = queue("leasing")
        checking = queue("checking")
        scanner = queue("scanner")
        surveyor = queue("surveyor")
        readers = [queue("reader-1"), queue("reader-2")]
        await connector.survey()
        do throws(StoreError) {
            try await writer.run { [self] connection, deadline throws(StoreError) in
                if let obstacle = try PostgresSchema().migrate(connection, until: deadline) {
                    incidents.record(.changeWaits(obstacle))
                }
                try checkServer(connection, until: deadline)
                _ = try run(StatementBatch(.clock), on: connection, until: deadline)
            }
        } catch {
            await close()
            throw error
        }
    }

    /// The connection for a read of a single row.
    var reader: PostgresConnectionQueue { readers[Int(truncatingIfNeeded: random.nextBits() % UInt64(readers.count))] }

    package func leaseTime() async throws -> LeaseTime { leaseTimeNow }

    var leaseTimeNow: LeaseTime {
        let instant = leaseClock?.sinceBoot ?? BootInstant(milliseconds: clock.now.milliseconds)
        return LeaseTime(epoch: Self.epoch, instant: instant)
    }

    /// The epoch of the clock that times leases, which no restart of a machine sets back.
    static let epoch = "database"

    package func transact<Result: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Result
    ) async throws -> Result {
        try await transact(through: writer, body)
    }

    package func storeResults<Result: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Result
    ) async throws -> Result {
        try await TraceContext.$current.withValue(nil) { try await transact(through: results, body) }
    }

    private func transact<Result: Sendable>(
        through queue: PostgresConnectionQueue,
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Result
    ) async throws -> Result {
        let trace = TraceContext.current
        let outcome: Swift.Result<Result, any Error> = try await queue.run {
            [self] connection, deadline throws(StoreError) in
            let transaction = PostgresTransaction(of: self, on: connection, until: deadline, trace: trace)
            return try run(body, in: transaction)
        }
        return try outcome.get()
    }

    private func run<Result: Sendable>(
        _ body: @Sendable (any StoreTransaction) throws -> Result,
        in transaction: PostgresTransaction
    ) throws(StoreError) -> Swift.Result<Result, any Error> {
        let outcome = Swift.Result { try body(transaction) }
        guard case .success = outcome else {
            try transaction.rollBack()
            return outcome
        }
        try transaction.commit()
        return outcome
    }

    /// Closes all connections.
    ///
    /// A second call does nothing.
    package func close() async {
        let endings = listeners.withLock { endings in
            defer { endings = nil }
            return endings ?? []
        }
        for end in endings { end() }
        for queue in [writer, results, leasing, checking, scanner, surveyor] + readers { await queue.close() }
    }

    /// Runs a batch.
    ///
    /// If its last statement reads the clock, the reading is used.
    func run(_ batch: StatementBatch, on connection: PostgresConnection, until deadline: CallDeadline)
        throws(StoreError) -> [StatementResult]
    {
        let start = local.sinceBoot
        let results: [StatementResult]
        do throws(StoreError) {
            results = try connection.run(batch, until: deadline)
        } catch {
            throw handle(error, on: connection)
        }
        let end = local.sinceBoot
        try recordTimeline(from: results, of: batch, on: connection)
        if let position = batch.clockPosition {
            let reading = try results[position].first { $0.timestamp() }
            if let reading = reading ?? nil { clock.take(reading, sentAt: start, receivedAt: end) }
        }
        return results
    }

    /// Ends a failed transaction and returns its failure, which matters more to the caller than one of the ROLLBACK.
    func rollBack(after failure: StoreError, on connection: PostgresConnection, until deadline: CallDeadline)
        -> StoreError
    {
        guard !failure.losesConnection else { return failure }
        do throws(StoreError) {
            _ = try connection.run(StatementBatch(.rollback), until: deadline)
            return failure
        } catch {
            return error.losesConnection ? failure.losingConnection : failure
        }
    }

    /// Ends the transaction that a batch began, and makes it durable.
    ///
    /// If the connection is lost, or the server answers the COMMIT with an unknown error, it is not known whether the
    /// transaction took place. `isRepeatable` is `true` if a repetition does no harm.
    func commit(
        _ batch: StatementBatch,
        isRepeatable: Bool = false,
        on connection: PostgresConnection,
        until deadline: CallDeadline
    ) throws(StoreError) -> [StatementResult] {
        var batch = batch
        batch.add(.commit)
        do {
            return try run(batch, on: connection, until: deadline)
        } catch {
            if error.isAnswerToCommit, !error.deniesCommit { throw error.asUncertain(in: connection.database) }
            let isOpen = error.losesConnection && !error.deniesCommit
            throw isOpen && !isRepeatable
                ? error.asUncertain(in: connection.database) : rollBack(after: error, on: connection, until: deadline)
        }
    }
}

extension SQLQuery {
    static let readClock = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

    /// Returns the SQL for the database's time in milliseconds since 1970, or for the parameter with this number if a
    /// test gives a time.
    ///
    /// It is the time at which the statement began: the same wherever it is computed. Extensions that compute a part of
    /// a statement for each partition or on another server refuse `clock_timestamp()` in an UPDATE, or read it there.
    static func now(unless number: Int) -> String {
        "(SELECT coalesce($\(number)::bigint, (extract(epoch FROM statement_timestamp()) * 1000)::bigint))"
    }

    /// Names the isolation level, because a role or a database can have another one as its default.
    ///
    /// A statement must see what was committed while its transaction waited for the lock. In REPEATABLE READ it would
    /// not: a notice that is stored while the one before it is being accepted would never become due.
    static let begin = SQLQuery("begin", sql: "BEGIN ISOLATION LEVEL READ COMMITTED")
    static let commit = SQLQuery("commit", sql: "COMMIT")
    static let rollback = SQLQuery("roll back", sql: "ROLLBACK")

    static let clock = SQLQuery("clock", sql: "SELECT \(readClock)")

    /// Ends a transaction that holds up others: its worker might have been stopped in the middle.
    ///
    /// It also makes a commit durable before the server responds, even if a role or a database is set not to wait for
    /// that (https://www.postgresql.org/docs/15/wal-async-commit.html). The server reports in a warning if the wait for
    /// a standby was cancelled.
    static let limits = SQLQuery(
        "limits",
        sql: """
            SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $1, true),
                set_config('idle_in_transaction_session_timeout', $2, true),
                set_config('client_min_messages', 'warning', true),
                CASE WHEN current_setting('synchronous_commit') = 'off'
                    THEN set_config('synchronous_commit', 'on', true) END
            """
    )
    /// Limits a single query, also while it waits for a lock: a server does not notice that the client of a waiting
    /// session is gone, and such sessions would add up.
    static let queryLimit = SQLQuery("query limit", sql: "SELECT set_config('statement_timeout', $1, true)")
    static let takeLock = SQLQuery("waiting for other transactions", sql: "SELECT pg_advisory_xact_lock($1)")
}

extension StatementBatch {
    /// Adds the wait for the lock of the transactions that change grants.
    mutating func addWriterLock(of schema: SchemaName) { add(.takeLock, .integer(schema.writingLock)) }

    var clockPosition: Int? { entries.lastIndex { $0.query.preparedName == SQLQuery.clock.preparedName } }
}

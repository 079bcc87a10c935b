package import Base
private import Synchronization

@testable package import Storage

/// A store in a temporary SQLite database, which counts its transactions and fails when a test says so.
///
/// ``database`` is the store below: what a test does through it is neither counted nor held up, and never fails.
package final class TestStore: SQLStore {
    private struct State {
        var transactions = 0
        var failures = 0
        var error = StoreError(.busy, "busy")
        var failed = 0
        var claims = 0
        var claimError: StoreError?
        var isReadOnly = false
        var rescheduleFailures = 0
        var hasEndlessRetries = false
        var countsTimeOut = false
        var hasHiddenGrants = false
        var lookError: StoreError?
        var beforeClaim: @Sendable (_ number: Int) async -> Void = { _ in }
        var beforeTransaction: @Sendable () async -> Void = {}
        var beforeQuery: (@Sendable (_ name: String) async -> Void)?
    }

    package let database: SQLiteStore
    /// `true` if the store takes plain refreshes, as PostgreSQL does.
    package let isSharedByWorkers: Bool
    private let uncounted = UncountedRefreshes()
    private let state = Mutex(State())
    // The last property: the folder is removed after the database is closed.
    private let folder: TemporaryDatabaseFolder

    package init(
        time: any TimeSource,
        random: any RandomSource = SystemRandom(),
        keepsNotices: Bool = false,
        isSharedByWorkers: Bool = false
    ) throws {
        folder = try TemporaryDatabaseFolder()
        database = try SQLiteStore(
            path: folder.path + "/grants.db",
            timeSource: time,
            random: random,
            bootID: "boot",
            keepsNotices: keepsNotices
        )
        self.isSharedByWorkers = isSharedByWorkers
    }

    /// The number of transactions so far, including failed ones.
    package var transactions: Int { state.withLock(\.transactions) }
    /// The number of transactions that failed because the test said so.
    package var failed: Int { state.withLock(\.failed) }
    /// The number of claims that were requested.
    package var claims: Int { state.withLock(\.claims) }

    /// Makes the next `count` transactions fail.
    package func failTransactions(_ count: Int, with code: StoreError.Code = .busy) {
        state.withLock {
            $0.failures = count
            $0.error = StoreError(code, "the test says so")
        }
    }

    /// Makes every claim fail; `nil` ends that.
    package func failClaims(with code: StoreError.Code?) {
        state.withLock { $0.claimError = code.map { StoreError($0, "the test says so") } }
    }

    /// Makes every write fail, and reads work, as a server does whose disk is full; or ends that.
    package func setReadOnly(_ isReadOnly: Bool) {
        state.withLock { $0.isReadOnly = isReadOnly }
    }

    private func refuseIfReadOnly() throws(StoreError) {
        let isReadOnly = state.withLock(\.isReadOnly)
        guard !isReadOnly else { throw StoreError(.readOnly, "the test says so") }
    }

    /// Makes every count fail as on a PostgreSQL server that ends it at its limit.
    package func timeOutCounts() {
        state.withLock { $0.countsTimeOut = true }
    }

    private func refuseCount(_ statements: [SQLStatement], by reader: SQLReader) throws(StoreError) {
        guard state.withLock(\.countsTimeOut) else { return }
        let isCount =
            switch reader {
            case .survey, .wholeTable: true
            case .single, .scan: statements.contains { $0.query.name == Self.scanQueries.dueClients.name }
            }
        guard isCount else { return }
        var error = StoreError(.busy, "canceling statement due to statement timeout")
        error.sqlState = "57014"
        throw error
    }

    /// Makes pages empty until a full look is finished, which fails with the given code.
    package func hideGrants(lookFailsWith code: StoreError.Code? = nil) {
        state.withLock {
            $0.hasHiddenGrants = true
            $0.lookError = code.map { StoreError($0, "the test says so") }
        }
    }

    package func waitForFullLook(ofClient _: String) async throws {
        try state.withLock { state in
            if let error = state.lookError { throw error }
            state.hasHiddenGrants = false
        }
    }

    /// Makes the retries after an outage endless.
    package func retryEndlessly() {
        state.withLock { $0.hasEndlessRetries = true }
    }

    /// Makes the next changes of due times after a step of the clock fail.
    package func failReschedules(_ count: Int) {
        state.withLock { $0.rescheduleFailures = count }
    }

    /// Runs `action` at the beginning of each claim, numbered from one.
    package func beforeClaim(_ action: @escaping @Sendable (_ number: Int) async -> Void) {
        state.withLock { $0.beforeClaim = action }
    }

    /// Runs `action` at the beginning of each transaction, which waits for it.
    package func beforeTransaction(_ action: @escaping @Sendable () async -> Void) {
        state.withLock { $0.beforeTransaction = action }
    }

    /// Runs `action` before each query outside a transaction, which waits for it; `nil` ends that.
    package func beforeQuery(_ action: (@Sendable (_ name: String) async -> Void)?) {
        state.withLock { $0.beforeQuery = action }
    }

    package func transact<Result: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Result
    ) async throws -> Result {
        let action = state.withLock { state in
            state.transactions += 1
            return state.beforeTransaction
        }
        await action()
        try refuseIfReadOnly()
        try state.withLock { state in
            guard state.failures > 0 else { return }
            state.failures -= 1
            state.failed += 1
            throw state.error
        }
        guard isSharedByWorkers else { return try await database.transact(body) }
        return try await database.transact { [uncounted] transaction in try uncounted.run(body, in: transaction) }
    }

    package func storePlain(_ refreshes: [PlainRefresh], at now: Timestamp) async throws -> Set<GrantID> {
        try refuseIfReadOnly()
        return try await database.transact { [uncounted] transaction in
            var stored: Set<GrantID> = []
            for refresh in refreshes where try transaction.replace(refresh.claimed, by: refresh.refreshed) {
                uncounted.add(refresh, at: now)
                stored.insert(refresh.claimed.id)
            }
            return stored
        }
    }

    package func claim(
        _ ids: [GrantID],
        dueBy: Timestamp?,
        owner: String,
        for span: Duration,
        takesOver: Bool
    ) async throws -> [Grant] {
        let (number, action) = state.withLock { state in
            state.claims += 1
            return (state.claims, state.beforeClaim)
        }
        await action(number)
        try refuseIfReadOnly()
        if let error = state.withLock(\.claimError) { throw error }
        return try await database.claim(ids, dueBy: dueBy, owner: owner, for: span, takesOver: takesOver)
    }

    package func expediteRetries(
        ofClient client: String,
        dueBy: Timestamp,
        after cursor: GrantID?,
        atMost count: Int
    ) async throws -> GrantID? {
        let next = try await database.expediteRetries(ofClient: client, dueBy: dueBy, after: cursor, atMost: count)
        return state.withLock(\.hasEndlessRetries) ? GrantID(rawValue: 1) : next
    }

    package func restartDoubts(at now: Timestamp, confirmingAt dueAt: Timestamp) async throws -> Set<String> {
        try await database.restartDoubts(at: now, confirmingAt: dueAt)
    }

    package func rescheduleGrantsStoredAfter(_ now: Timestamp) async throws -> Int {
        try state.withLock { state in
            guard state.rescheduleFailures > 0 else { return }
            state.rescheduleFailures -= 1
            throw StoreError(.busy, "the test says so")
        }
        return try await database.rescheduleGrantsStoredAfter(now)
    }
}

// An SQL store leaves these calls to its database. They pass through, and all others come from the protocol.
extension TestStore {
    package static var grantQueries: GrantQueries { SQLiteStore.grantQueries }
    package static var scanQueries: ScanQueries { SQLiteStore.scanQueries }
    package static var removeTombstones: [SQLQuery] { SQLiteStore.removeTombstones }
    package static var lastLease: SQLQuery { SQLiteStore.lastLease }
    package static var schemaVersion: SQLQuery { SQLiteStore.schemaVersion }
    package var beforeMove: [SQLStatement] { database.beforeMove }
    package var databaseName: String { database.databaseName }
    package var bootID: String { database.bootID }

    package func rows<Element: Sendable>(
        _ statements: [SQLStatement],
        by reader: SQLReader,
        _ read: @escaping @Sendable (_ position: Int, _ row: inout SQLiteRow) throws(StoreError) -> Element
    ) async throws(StoreError) -> [Element] {
        if let action = state.withLock(\.beforeQuery) {
            for statement in statements { await action(statement.query.name) }
        }
        try refuseCount(statements, by: reader)
        return try await database.rows(statements, by: reader, read)
    }

    package func change<Element: Sendable>(
        _ statements: [SQLStatement],
        _ options: SQLChangeOptions,
        _ read: @escaping @Sendable (inout SQLiteRow) throws(StoreError) -> Element
    ) async throws(StoreError) -> (changed: [Int], last: [Element]) {
        try refuseIfReadOnly()
        return try await database.change(statements, options, read)
    }

    package static var allOfGrants: String { SQLiteStore.allOfGrants }

    package static func restore(_ rows: [[SQLValue]], of kind: ArchiveRecord.Kind) -> [SQLStatement] {
        SQLiteStore.restore(rows, of: kind)
    }

    package func leaseTime() async throws -> LeaseTime { try await database.leaseTime() }

    package func renew(_ leases: [GrantID: Int64], for span: Duration) async throws -> Set<GrantID> {
        try refuseIfReadOnly()
        return try await database.renew(leases, for: span)
    }

    package func release(_ leases: [GrantID: Int64]) async throws {
        try refuseIfReadOnly()
        try await database.release(leases)
    }

    package func due(
        ofClient client: String,
        by limit: Timestamp,
        after cursor: DueEntry?,
        atMost count: Int
    ) async throws -> [DueEntry] {
        if state.withLock(\.hasHiddenGrants) { return [] }
        return try await database.due(ofClient: client, by: limit, after: cursor, atMost: count)
    }

    package func close() async { await database.close() }
}

extension Store {
    /// Removes what has expired by a clock that was not stepped.
    package func removeExpired(at now: Timestamp) async throws -> RemovedCounts {
        try await removeExpired(by: now, at: now)
    }
}

import Base

/// The transaction that ``PostgresStore/transact(_:)`` passes to its body, valid until that body returns.
///
/// Its writes are collected and sent together with the commit, or before a query whose result they might change. So a
/// body that announces its reads takes two round trips: one to begin and read, one to write and commit.
final class PostgresTransaction: SQLTransaction {
    private static let health = SQLQuery.clients.select("client health", "WHERE client_id = ANY($1)")
    static let grantQueries = PostgresGrantRow.lockingQueries
    private static let grantsByID = SQLQuery(
        "grants by id",
        sql:
            "SELECT \(grantQueries.columns) FROM \(grantQueries.source) WHERE id = ANY($1) ORDER BY id\(PostgresGrantRow.lock)"
    )
    let store: PostgresStore
    private let connection: PostgresConnection
    private let deadline: CallDeadline
    /// The caller's trace, stored with each notice.
    private let trace: TraceContext?
    private var hasBegun = false
    /// The time that was left when the server's limits were last set.
    private var lastLimit: Duration = .zero
    private var isOpen = true
    /// The first failure: PostgreSQL accepts no more statements after it.
    private var failure: StoreError?
    /// The grants in the database, as far as this transaction has read them, or `nil` for those that do not exist.
    var stored: [GrantID: Grant?] = [:]
    private var healths: [String: [UInt8]?] = [:]
    private var uncountedSuccesses: [String: [UncountedSuccesses]] = [:]
    var writes = PendingWrites()

    init(
        of store: PostgresStore,
        on connection: PostgresConnection,
        until deadline: CallDeadline,
        trace: TraceContext?
    ) {
        self.store = store
        self.connection = connection
        self.deadline = deadline
        self.trace = trace
    }

    var leaseTime: LeaseTime { store.leaseTimeNow }

    // MARK: Round trips

    func rows<Element>(
        _ statement: SQLStatement,
        _ read: (inout PostgresRow) throws(StoreError) -> Element
    ) throws(StoreError) -> [Element] {
        let results = try send([statement])
        return try perform { () throws(StoreError) in try results[0].rows(read) }
    }

    func grants(_ statement: SQLStatement) throws(StoreError) -> [Grant] {
        let grants = try rows(statement, Grant.read)
        for grant in grants { stored[grant.id] = grant }
        return grants
    }

    func grants(found search: GrantSearch, by values: [SQLValue]) throws(StoreError) -> [Grant] {
        let ids = try rows(SQLStatement(search.ids, values)) { GrantID(rawValue: $0.integer()) }
        guard !ids.isEmpty else { return [] }
        return try grants(SQLStatement(search.grantsOfIDs, values + [.ids(ids.sorted())]))
    }

    func change(_ statements: [SQLStatement]) throws(StoreError) -> [Int] { try send(statements).map(\.changedRows) }

    /// Runs statements after those that must come before them, and after the collected writes.
    func send(_ statements: [SQLStatement]) throws(StoreError) -> [StatementResult] {
        var batch = opening()
        for (id, grant) in writes.grants { stored[id] = grant }
        writes.move(to: &batch)
        for statement in statements { batch.add(statement) }
        let results = try perform { () throws(StoreError) in
            try store.run(batch, on: connection, until: deadline)
        }
        return results.suffix(statements.count)
    }

    func forgetGrants() { stored = [:] }

    func wipe() {}

    /// Returns a batch that begins the transaction, unless it has begun.
    ///
    /// The server's limit applies to each statement, so a batch that is sent late sets a shorter one.
    private func opening() -> StatementBatch {
        let remaining = deadline.remaining
        guard !hasBegun else {
            guard remaining < lastLimit / 2 else { return StatementBatch() }
            lastLimit = remaining
            var batch = StatementBatch()
            batch.addLimits(until: deadline)
            return batch
        }
        hasBegun = true
        lastLimit = remaining
        var batch = StatementBatch(until: deadline)
        batch.addWriterLock(of: store.address.schema)
        store.addUseCheck(to: &batch, on: connection)
        batch.add(.clock)
        return batch
    }

    func perform<Value>(_ body: () throws(StoreError) -> Value) throws(StoreError) -> Value {
        guard isOpen else { throw StoreError(.fault, "A transaction was used after its end.") }
        if let failure { throw failure }
        do {
            return try body()
        } catch {
            failure = error
            throw error
        }
    }

    /// Sends the collected writes and makes them durable.
    func commit() throws(StoreError) {
        isOpen = false
        guard failure == nil else { return try rollBack() }
        guard hasBegun || !writes.isEmpty else { return }
        do throws(StoreError) {
            // Another connection might have recorded a newer server since this transaction began.
            try store.connector.check(connection)
        } catch {
            failure = error
            try rollBack()
        }
        var batch = opening()
        writes.move(to: &batch, notifying: store.address.schema.channel)
        _ = try store.commit(batch, on: connection, until: deadline)
    }

    /// Rolls back, and throws the original failure if it came from the database.
    func rollBack() throws(StoreError) {
        isOpen = false
        if let failure { throw hasBegun ? store.rollBack(after: failure, on: connection, until: deadline) : failure }
        if hasBegun { _ = try connection.run(StatementBatch(.rollback), until: deadline) }
    }

    // MARK: Grants

    func willRead(grants ids: [GrantID], healthOf clients: [String]) throws {
        let missing = Set(ids).filter { stored[$0] == nil && writes.grants[$0] == nil }.sorted()
        let unknown = Set(clients).filter { healths[$0] == nil }.sorted()
        guard !missing.isEmpty || !unknown.isEmpty else { return }
        var batch = opening()
        let healthPosition = batch.add(Self.health, .texts(unknown))
        let successesPosition = batch.add(UncountedSuccesses.take, .texts(unknown))
        let grantsPosition = batch.add(Self.grantsByID, .ids(missing))
        try perform { () throws(StoreError) in
            let results = try store.run(batch, on: connection, until: deadline)
            for client in unknown { healths[client] = .some(nil) }
            _ = try results[healthPosition].rows { healths[$0.text()] = $0.blob() }
            for (client, successes) in try results[successesPosition].rows(UncountedSuccesses.read) {
                uncountedSuccesses[client, default: []].append(successes)
            }
            for id in missing { stored[id] = .some(nil) }
            for grant in try results[grantsPosition].rows(Grant.read) { stored[grant.id] = grant }
        }
    }

    func grant(_ id: GrantID) throws -> Grant? { try current(id) }

    func grant(ofUser userID: String, connection: ConnectionID) throws -> Grant? {
        // By bytes, as the database does: é can be one character or two.
        let changed = writes.grants.values.first {
            $0.connection == connection && $0.userID.utf8.elementsEqual(userID.utf8)
        }
        if let changed { return changed }
        let query = SQLStatement(Self.grantQueries.ofConnection, .text(userID), .text(connection.description))
        return try grants(query).first
    }

    func insert(_ grant: Grant) throws {
        let user = User(id: grant.userID, createdAt: grant.createdAt)
        let changed = try change(
            [SQLStatement(.insertUser, User.table.values(of: user))] + PostgresGrantRow.insert(grant)
        )
        guard changed[1] == 1 else {
            throw StoreError(
                .conflict,
                """
                The user has a grant with this connection or account already or was deleted, or the grant's id is taken.
                """
            )
        }
        stored[grant.id] = grant
        writes.count(grant.state, by: 1)
    }

    func update(_ grant: Grant) throws {
        guard let former = try current(grant.id) else {
            throw StoreError(.conflict, "There is no grant \(grant.id) to update.")
        }
        try former.allow(grant)
        guard former != grant else { return }
        // The unique index on accounts checks row by row, so the grant that has left this account is written before.
        if writes.hasLeft(accountOf: grant) { _ = try send([]) }
        let isLasting = (stored[grant.id] ?? nil).map { PostgresGrantRow.keepsSeldomChanged(grant, from: $0) } ?? false
        writes.update(grant, from: former, keepsSeldomChanged: isLasting)
    }

    func record(_ event: GrantEvent) throws {
        guard let grant = try current(event.grant) else {
            throw StoreError(.conflict, "There is no grant \(event.grant) to record an event of.")
        }
        writes.events.append(event)
        if let content = Notice.content(for: event, of: grant) { notify(content, ofUser: grant.userID, at: event.at) }
    }

    func notify(_ content: Notice.Content, ofUser userID: String, at now: Timestamp) {
        guard store.keepsNotices else { return }
        let id = NoticeID.random(from: store.random)
        writes.notices.append(.insertNotice(content, id: id, ofUser: userID, at: now, trace: trace))
    }

    func clientHealth(_ clientID: String) throws -> [UInt8]? {
        try willRead(grants: [], healthOf: [clientID])
        return healths[clientID] ?? nil
    }

    func takeUncountedSuccesses(of clientID: String) throws -> [UncountedSuccesses] {
        try willRead(grants: [], healthOf: [clientID])
        return uncountedSuccesses.removeValue(forKey: clientID) ?? []
    }

    func setClientHealth(_ health: [UInt8], of clientID: String) throws {
        healths[clientID] = health
        writes.healths[clientID] = health
    }

    private func current(_ id: GrantID) throws(StoreError) -> Grant? {
        if let grant = writes.grants[id], isOpen, failure == nil { return grant }
        if let known = stored[id], isOpen, failure == nil { return known }
        let grant = try grants(SQLStatement(Self.grantsByID, .ids([id]))).first
        stored[id] = .some(grant)
        return grant
    }
}

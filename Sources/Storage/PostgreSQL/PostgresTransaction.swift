import Base

/// The transaction that ``PostgresStore/transact(_:)`` passes to its body; valid until that body returns.
///
/// Its writes are collected and sent together with the commit, or before a query whose result they may change. So a
/// body that announces its reads takes two round trips: one to begin and read, one to write and commit.
final class PostgresTransaction: StoreTransaction {
    private static let health = PostgresQuery(
        "client health",
        "SELECT client_id, health FROM refresh_worker.clients WHERE client_id = ANY($1)"
    )
    private static let grantsByID = PostgresQuery.lockedGrants("grants by id", where: "g.id = ANY($1)")
    private static let grantOfUser = PostgresQuery.lockedGrants("grant of user", where: "g.user_id = $1")
    private static let sameAccount = PostgresQuery.lockedGrants(
        "grants of the same Google account",
        where: "g.google_user_id = $1 AND g.id <> $2 AND g.refresh_token IS NOT NULL"
    )
    /// `$1` is the account's id, if known: a grant that is known to belong to another account does not count.
    private static let sameEmail = PostgresQuery.lockedGrants(
        "grants of the same e-mail",
        where: """
            g.email IS NOT NULL AND lower(g.email) = lower($3 COLLATE "C") AND g.id <> $2
                AND g.refresh_token IS NOT NULL AND ($1::text IS NULL OR g.google_user_id IS NULL)
            """
    )
    /// In an order that violates no foreign key.
    private static let moveUser = [
        PostgresQuery("move sessions", "UPDATE refresh_worker.sessions SET user_id = $2 WHERE user_id = $1"),
        PostgresQuery("move grant", "UPDATE refresh_worker.grants SET user_id = $2 WHERE user_id = $1"),
        PostgresQuery("remove moved user", "DELETE FROM refresh_worker.users WHERE user_id = $1 AND user_id <> $2"),
    ]
    private let store: PostgresStore
    private let connection: PostgresConnection
    private let deadline: CallDeadline
    private var hasBegun = false
    /// The time that was left when the server's limits were last set.
    private var lastLimit: Duration = .zero
    private var isOpen = true
    /// The first failure: PostgreSQL accepts no more statements after it.
    private var failure: StatementFailure?
    /// The grants in the database, as far as this transaction has read them; `nil` for those that do not exist.
    private var stored: [GrantID: Grant?] = [:]
    private var healths: [String: [UInt8]?] = [:]
    private var uncountedSuccesses: [String: [UncountedSuccesses]] = [:]
    private var writes = PendingWrites()

    init(of store: PostgresStore, on connection: PostgresConnection, until deadline: CallDeadline) {
        self.store = store
        self.connection = connection
        self.deadline = deadline
    }

    var leaseTime: LeaseTime { store.leaseTimeNow }

    var unsentEvents: [GrantEvent] { writes.events }

    // MARK: Round trips

    /// Runs one query, after the statements that must come before it.
    func run(_ query: PostgresQuery, bind: (inout Parameters) -> Void) throws(StoreError) -> StatementResult {
        try roundTrip { (batch: inout StatementBatch) in batch.add(query, bind: bind) }
    }

    /// Sends the statements that `fill` adds, and returns the result at the position that `fill` returns.
    func roundTrip(_ fill: (inout StatementBatch) -> Int) throws(StoreError) -> StatementResult {
        var batch = opening()
        let position = fill(&batch)
        return try perform { () throws(StatementFailure) in
            try store.run(batch, on: connection, until: deadline)[position]
        }
    }

    func read<Value>(_ body: () throws(StatementFailure) -> Value) throws(StoreError) -> Value {
        try perform(body)
    }

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
        batch.addWriterLock()
        store.addUseCheck(to: &batch, on: connection)
        batch.add(.clock)
        return batch
    }

    private func perform<Value>(_ body: () throws(StatementFailure) -> Value) throws(StoreError) -> Value {
        guard isOpen else { throw StoreError(.fault, "A transaction was used after its end.") }
        if let failure { throw failure.error }
        do {
            return try body()
        } catch {
            failure = error
            throw error.error
        }
    }

    /// Sends the collected writes and makes them durable.
    func commit() throws(StatementFailure) {
        isOpen = false
        guard failure == nil else { return try rollBack() }
        guard hasBegun || !writes.isEmpty else { return }
        do throws(StatementFailure) {
            // Another connection may have recorded a newer server since this transaction began.
            try store.connector.check(connection)
        } catch {
            failure = error
            try rollBack()
        }
        var batch = opening()
        writes.move(to: &batch, notifying: true)
        _ = try store.commit(batch, on: connection, until: deadline)
    }

    /// Rolls back; throws the original failure if it came from the database.
    func rollBack() throws(StatementFailure) {
        isOpen = false
        if let failure {
            throw hasBegun ? store.rollBack(after: failure, on: connection, until: deadline) : failure
        }
        if hasBegun { _ = try connection.run(StatementBatch(.rollback), until: deadline) }
    }

    // MARK: Grants

    func willRead(grants ids: [GrantID], healthOf clients: [String]) throws {
        let missing = Set(ids).filter { stored[$0] == nil && writes.grants[$0] == nil }.sorted()
        let unknown = Set(clients).filter { healths[$0] == nil }.sorted()
        guard !missing.isEmpty || !unknown.isEmpty else { return }
        var batch = opening()
        let healthPosition = batch.add(Self.health) { $0.bind(texts: unknown) { $0 } }
        let successesPosition = batch.add(UncountedSuccesses.take) { $0.bind(texts: unknown) { $0 } }
        let grantsPosition = batch.add(Self.grantsByID) { $0.bind(integers: missing, \.rawValue) }
        try perform { () throws(StatementFailure) in
            let results = try store.run(batch, on: connection, until: deadline)
            for client in unknown { healths[client] = .some(nil) }
            _ = try results[healthPosition].rows { (row: inout PostgresRow) throws(StatementFailure) in
                healths[row.text()] = row.optionalBlob() ?? []
            }
            for (client, successes) in try results[successesPosition].rows(UncountedSuccesses.read) {
                uncountedSuccesses[client, default: []].append(successes)
            }
            for id in missing { stored[id] = .some(nil) }
            for grant in try results[grantsPosition].rows(PostgresGrantRow.read) { stored[grant.id] = grant }
        }
    }

    func grant(_ id: GrantID) throws -> Grant? {
        try current(id)
    }

    func grant(ofUser userID: String) throws -> Grant? {
        if let grant = writes.grants.values.first(where: { $0.userID == userID }) { return grant }
        return try find(Self.grantOfUser) { $0.bind(userID) }.first
    }

    func grants(sharingAccountWith grant: Grant) throws -> [Grant] {
        var found: [Grant] = []
        if let googleUserID = grant.owner.googleUserID {
            found += try find(Self.sameAccount) {
                $0.bind(googleUserID)
                $0.bind(grant.id.rawValue)
            }
        }
        if let email = grant.owner.email {
            found += try find(Self.sameEmail) {
                $0.bind(grant.owner.googleUserID)
                $0.bind(grant.id.rawValue)
                $0.bind(email)
            }
        }
        return found.sorted { $0.id < $1.id }
    }

    /// Returns the grants that a query finds among the stored ones and those that this transaction wrote.
    func find(_ query: PostgresQuery, bind: (inout Parameters) -> Void) throws(StoreError) -> [Grant] {
        let result = try roundTrip { (batch: inout StatementBatch) in
            flushWrites(in: &batch)
            return batch.add(query, bind: bind)
        }
        return try perform { () throws(StatementFailure) in
            let grants = try result.rows(PostgresGrantRow.read)
            for grant in grants { stored[grant.id] = grant }
            return grants
        }
    }

    func insert(_ grant: Grant) throws {
        let result = try roundTrip { (batch: inout StatementBatch) in
            flushWrites(in: &batch)
            PostgresUserRow.addInsert(User(id: grant.userID, createdAt: grant.createdAt), to: &batch)
            let position = PostgresGrantRow.addInsert(grant, to: &batch)
            PostgresGrantRow.addScheduleInsert(grant, to: &batch)
            return position
        }
        guard result.changedRows == 1 else {
            throw StoreError(.conflict, "The user has a grant already or was deleted, or the grant's id is taken.")
        }
        stored[grant.id] = grant
        writes.count(grant.state, by: 1)
    }

    func move(user id: String, to other: String) throws {
        _ = try roundTrip { (batch: inout StatementBatch) in
            flushWrites(in: &batch)
            var last = 0
            for query in Self.moveUser {
                last = batch.add(query) {
                    $0.bind(id)
                    $0.bind(other)
                }
            }
            return last
        }
        stored = [:]
    }

    func update(_ grant: Grant) throws {
        guard let former = try current(grant.id) else {
            throw StoreError(.conflict, "There is no grant \(grant.id) to update.")
        }
        guard !former.forbids(grant) else {
            throw StoreError(.conflict, "The user of grant \(grant.id) was deleted.")
        }
        guard former != grant else { return }
        let isLasting = (stored[grant.id] ?? nil).map { PostgresGrantRow.keepsSeldomChanged(grant, from: $0) } ?? false
        writes.update(grant, from: former, keepsSeldomChanged: isLasting)
    }

    func record(_ event: GrantEvent) throws {
        guard let grant = try current(event.grant) else {
            throw StoreError(.conflict, "There is no grant \(event.grant) to record an event of.")
        }
        writes.events.append(event)
        if let content = Notice.content(for: event) { notify(content, ofUser: grant.userID, at: event.at) }
    }

    func notify(_ content: Notice.Content, ofUser userID: String, at now: Timestamp) {
        guard store.keepsNotices else { return }
        writes.notices.append(
            PendingNotice(content: content, userID: userID, at: now, nonce: store.random.nextBits())
        )
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
        let grant = try find(Self.grantsByID) { $0.bind(integers: [id], \.rawValue) }.first
        stored[id] = .some(grant)
        return grant
    }

    /// Adds collected writes to a batch whose query they may affect.
    private func flushWrites(in batch: inout StatementBatch) {
        for (id, grant) in writes.grants { stored[id] = grant }
        writes.move(to: &batch, notifying: false)
    }
}

extension PostgresQuery {
    /// Returns a query for grants that locks them against claims and plain refreshes until the transaction ends.
    ///
    /// Both rows are locked: only a locked row is read again if a plain refresh has changed it since the snapshot.
    static func lockedGrants(_ name: String, where condition: String) -> PostgresQuery {
        PostgresQuery(
            name,
            "SELECT \(PostgresGrantRow.columns) FROM \(PostgresGrantRow.source) WHERE \(condition) ORDER BY g.id FOR UPDATE OF s FOR NO KEY UPDATE OF g"
        )
    }
}

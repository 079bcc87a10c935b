import Base

/// The transaction that ``SQLiteStore/transact(_:)`` passes to its body, valid until that body returns.
final class SQLiteTransaction: SQLTransaction {
    static let grantQueries = SQLiteGrantRow.queries
    static let trimEvents = SQLQuery.trimEvents(ofGrant: "$1")
    private static let selectHealth = SQLQuery.clients.only(["health"]).select("client health", "WHERE client_id = $1")

    private let store: SQLiteStore
    let connection: SQLiteConnection
    /// The caller's trace, stored with each notice.
    private let trace: TraceContext?
    /// The current grants that this transaction has read or written.
    private var grants: [GrantID: Grant] = [:]
    private var isOpen = true
    /// The first failure after which SQLite might have rolled back the whole transaction: nothing can follow it.
    private var failure: StoreError?
    /// The statement by which most results are stored, once it is prepared.
    private var refreshUpdate: Statement?
    /// The changes of leases after the commit.
    private(set) var leaseChanges = LeaseChanges()
    /// `true` if deleted data must leave the log as well.
    private var wipes = false

    init(of store: SQLiteStore, on connection: SQLiteConnection, trace: TraceContext?) {
        self.store = store
        self.connection = connection
        self.trace = trace
    }

    /// Ends the transaction's use, and throws if the body continued after a failure that invalidated it.
    func finish() throws(StoreError) {
        isOpen = false
        if let failure { throw failure }
        if wipes { connection.needsWipe = true }
    }

    var leaseTime: LeaseTime { store.leaseTimeNow }

    func grant(_ id: GrantID) throws -> Grant? { try stored(id) }

    func grant(ofUser userID: String, connection: ConnectionID) throws -> Grant? {
        let query = SQLStatement(Self.grantQueries.ofConnection, .text(userID), .text(connection.description))
        guard let grant = try grants(query).first else { return nil }
        grants[grant.id] = grant
        return grant
    }

    func insert(_ grant: Grant) throws {
        guard try user(grant.userID)?.isDeleted != true else {
            throw StoreError(.conflict, "The user of the grant was deleted.")
        }
        try perform { () throws(StoreError) in
            let user = User(id: grant.userID, createdAt: grant.createdAt)
            try connection.run(SQLStatement(.insertUser, User.table.values(of: user)))
            try connection.run(SQLStatement(SQLiteGrantRow.insert, Grant.table.values(of: grant)))
            try connection.run(SQLiteStore.countAdded)
        }
        if let lease = grant.lease { leaseChanges.set(lease, of: grant.id, ending: nil) }
        grants[grant.id] = grant
    }

    func update(_ grant: Grant) throws {
        guard var former = try stored(grant.id) else {
            throw StoreError(.conflict, "There is no grant \(grant.id) to update.")
        }
        try former.allow(grant)
        // Leases are not part of the row. Grants are compared once and not copied: each refresh gets here.
        let formerLease = former.lease
        former.setLease(grant.lease)
        let keepsRow = former == grant
        guard !keepsRow || formerLease != grant.lease else { return }
        try perform { () throws(StoreError) in
            guard !keepsRow else { return }
            let part = SQLiteGrantRow.part(of: grant, from: former)
            try connection.run(part.update) { SQLiteGrantRow.bindUpdate(grant, part: part, to: $0) }
        }
        if formerLease != grant.lease { leaseChanges.set(grant.lease, of: grant.id, ending: formerLease?.claim) }
        grants[grant.id] = grant
        noteWipe(of: former, by: grant)
    }

    func replace(_ claimed: Grant, by grant: Grant) throws -> Bool {
        // A grant that this transaction has handled already is compared with what it holds.
        let isHandled = !grants.isEmpty && grants.index(forKey: claimed.id) != nil
        guard !isHandled, grant.lease == nil, let lease = claimed.lease, let revision = lease.revision else {
            return try replaceIfSame(claimed, by: grant)
        }
        try claimed.allow(grant)
        let part = SQLiteGrantRow.part(of: grant, from: claimed)
        let isSame = try perform { () throws(StoreError) in
            try update(ofClaimed: part).run { statement in
                SQLiteGrantRow.bindUpdate(grant, part: part, to: statement)
                statement.bind(revision)
                statement.bind(lease.claim)
            }
            return connection.changedRows == 1
        }
        guard isSame else { return false }
        leaseChanges.endClaim(lease.claim, of: claimed.id)
        // The other parts leave the keys of both tokens as they are.
        if part == .all { noteWipe(of: claimed, by: grant) }
        return true
    }

    /// Returns the update of a claimed grant. The usual one is kept, because each refresh needs it.
    private func update(ofClaimed part: SQLiteGrantRow.Part) throws(StoreError) -> Statement {
        guard part == .refresh else { return try connection.prepared(part.updateOfClaimed) }
        if let refreshUpdate { return refreshUpdate }
        let statement = try connection.prepared(part.updateOfClaimed)
        refreshUpdate = statement
        return statement
    }

    /// Notes if an update deletes a token or the account's address, which must then leave the log as well.
    private func noteWipe(of former: Grant, by grant: Grant) {
        let wipesRefreshToken = former.refreshToken != nil && grant.refreshToken == nil
        let wipesAccessToken = former.accessToken != nil && grant.accessToken == nil
        let wipesAddress = former.owner.email != nil && grant.owner.email == nil
        if wipesRefreshToken || wipesAccessToken || wipesAddress { wipes = true }
    }

    func record(_ event: GrantEvent) throws {
        _ = try change([
            SQLStatement(.insertEvent, GrantEvent.added.values(of: event)),
            SQLStatement(Self.trimEvents, .integer(event.grant.rawValue)),
        ])
        guard store.keepsNotices, let grant = try stored(event.grant) else { return }
        guard let content = Notice.content(for: event, of: grant) else { return }
        try notify(content, ofUser: grant.userID, at: event.at)
    }

    func notify(_ content: Notice.Content, ofUser userID: String, at now: Timestamp) throws {
        guard store.keepsNotices else { return }
        let id = NoticeID.random(from: store.random)
        _ = try change([.insertNotice(content, id: id, ofUser: userID, at: now, trace: trace)])
    }

    func clientHealth(_ clientID: String) throws -> [UInt8]? {
        try first(SQLStatement(Self.selectHealth, .text(clientID))) { $0.blob() }
    }

    func setClientHealth(_ health: [UInt8], of clientID: String) throws {
        _ = try change([SQLStatement(.setHealth, .text(clientID), .bytes(health))])
    }

    // MARK: Statements

    func rows<Element>(
        _ statement: SQLStatement,
        _ read: (inout SQLiteRow) throws(StoreError) -> Element
    ) throws(StoreError) -> [Element] {
        try perform { () throws(StoreError) in try connection.rows(statement, read: read) }
    }

    func grants(_ statement: SQLStatement) throws(StoreError) -> [Grant] {
        try rows(statement, Grant.read).map { leaseChanges.applied(to: $0) }
    }

    func grants(found search: GrantSearch, by values: [SQLValue]) throws(StoreError) -> [Grant] {
        try grants(SQLStatement(search.grants, values))
    }

    func change(_ statements: [SQLStatement]) throws(StoreError) -> [Int] {
        try perform { () throws(StoreError) in try connection.change(statements) }
    }

    func wipe() { wipes = true }

    private func stored(_ id: GrantID) throws(StoreError) -> Grant? {
        if let grant = grants[id], isOpen, failure == nil { return grant }
        let grant = try perform { () throws(StoreError) in
            try connection.first(Self.grantQueries.byID, bind: { $0.bind(id.rawValue) }, read: Grant.read)
        }
        guard let grant else { return nil }
        let present = leaseChanges.applied(to: grant)
        grants[id] = present
        return present
    }

    func forgetGrants() { grants = [:] }

    private func perform<Value>(_ body: () throws(StoreError) -> Value) throws(StoreError) -> Value {
        guard isOpen else { throw StoreError(.fault, "A transaction was used after its end.") }
        if let failure { throw failure }
        do {
            return try body()
        } catch {
            // A conflict undoes only its own statement (https://sqlite.org/lang_conflict.html, ABORT).
            if error.code != .conflict { failure = error }
            throw error
        }
    }
}

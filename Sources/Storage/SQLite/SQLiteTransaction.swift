import Base

/// The transaction that ``SQLiteStore/transact(_:)`` passes to its body; valid until that body returns.
final class SQLiteTransaction: StoreTransaction {
    private static let insertUser = SQLiteQuery(
        "insert user",
        "INSERT INTO users (user_id, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING"
    )
    private static let insertEvent = SQLiteQuery(
        "insert event",
        """
        INSERT INTO grant_events (grant_id, at, kind, from_state, to_state, reason, generation)
        VALUES (?, ?, ?, ?, ?, ?, ?)
        """
    )
    /// Removes all but the last events of a grant, and keeps its last connection, with which security events are
    /// compared.
    static let trimEvents = SQLiteQuery(
        "trim events",
        """
        DELETE FROM grant_events WHERE grant_id = ?1
            AND seq <= (SELECT seq FROM grant_events WHERE grant_id = ?1
                ORDER BY seq DESC LIMIT 1 OFFSET \(Retention.eventsPerGrant))
            AND (kind <> '\(GrantEvent.Kind.connected.rawValue)' OR EXISTS (SELECT 1 FROM grant_events AS later
                WHERE later.grant_id = ?1 AND later.seq > grant_events.seq
                    AND later.kind = '\(GrantEvent.Kind.connected.rawValue)'))
        """
    )
    static let selectSameAccount = SQLiteQuery(
        "grants of the same Google account",
        """
        SELECT \(SQLiteGrantRow.columns) FROM \(SQLiteGrantRow.source)
        WHERE google_user_id = ?1 AND id <> ?2 AND refresh_token IS NOT NULL ORDER BY id
        """
    )
    /// `?1` is the account's id, if known: a grant that is known to belong to another account does not count.
    static let selectSameEmail = SQLiteQuery(
        "grants of the same e-mail",
        """
        SELECT \(SQLiteGrantRow.columns) FROM \(SQLiteGrantRow.source)
        WHERE email IS NOT NULL AND lower(email) = lower(?3) AND id <> ?2 AND refresh_token IS NOT NULL
            AND (?1 IS NULL OR google_user_id IS NULL) ORDER BY id
        """
    )
    private static let selectHealth = SQLiteQuery("client health", "SELECT health FROM clients WHERE client_id = ?")
    private static let upsertHealth = SQLiteQuery(
        "set client health",
        """
        INSERT INTO clients (client_id, health, updated_at) VALUES (?1, ?2, ?3)
        ON CONFLICT (client_id) DO UPDATE SET health = ?2, updated_at = ?3
        """
    )

    let connection: SQLiteConnection
    private let timeSource: any TimeSource
    private let epoch: String
    /// The source of the nonces in notice ids; `nil` if notices are not kept.
    private let noticeNonces: (any RandomSource)?
    /// The current grants that this transaction has read or written.
    private var grants: [GrantID: Grant] = [:]
    private var isOpen = true
    /// The first failure after which SQLite may have rolled back the whole transaction: nothing may follow it.
    private var failure: StoreError?
    /// The statement by which most results are stored, once it is prepared.
    private var refreshUpdate: Statement?
    /// The changes of leases after the commit.
    private(set) var leaseChanges = LeaseChanges()
    /// `true` if deleted data must leave the log as well.
    var wipes = false

    init(on connection: SQLiteConnection, timeSource: any TimeSource, epoch: String, noticeNonces: (any RandomSource)?)
    {
        self.connection = connection
        self.noticeNonces = noticeNonces
        self.timeSource = timeSource
        self.epoch = epoch
    }

    /// Ends the transaction's use; throws if the body continued after a failure that invalidated it.
    func finish() throws(StoreError) {
        isOpen = false
        if let failure { throw failure }
        if wipes { connection.needsWipe = true }
    }

    var leaseTime: LeaseTime { LeaseTime(epoch: epoch, instant: timeSource.sinceBoot) }

    func grant(_ id: GrantID) throws -> Grant? {
        try stored(id)
    }

    func grant(ofUser userID: String) throws -> Grant? {
        try caching(
            perform { () throws(StoreError) in
                try connection.first(.grantOfUser, bind: { $0.bind(userID) }, read: SQLiteGrantRow.read)
            }
        )
    }

    func grants(sharingAccountWith grant: Grant) throws -> [Grant] {
        try perform { () throws(StoreError) in
            let bind = { (statement: Statement) in
                statement.bind(grant.owner.googleUserID)
                statement.bind(grant.id.rawValue)
            }
            var found: [Grant] = []
            if grant.owner.googleUserID != nil {
                found += try connection.rows(Self.selectSameAccount, bind: bind, read: SQLiteGrantRow.read)
            }
            if let email = grant.owner.email {
                found += try connection.rows(
                    Self.selectSameEmail,
                    bind: { statement in
                        bind(statement)
                        statement.bind(email)
                    },
                    read: SQLiteGrantRow.read
                )
            }
            return found.map(withPresentLease).sorted { $0.id < $1.id }
        }
    }

    func insert(_ grant: Grant) throws {
        guard try user(grant.userID)?.isDeleted != true else {
            throw StoreError(.conflict, "The user of the grant was deleted.")
        }
        try perform { () throws(StoreError) in
            try connection.run(Self.insertUser) {
                $0.bind(grant.userID)
                $0.bind(grant.createdAt)
            }
            try connection.run(SQLiteGrantRow.insert) { SQLiteGrantRow.bindInsert(grant, to: $0) }
            try connection.run(.countAdded)
        }
        if let lease = grant.lease { leaseChanges.set(lease, of: grant.id, ending: nil) }
        grants[grant.id] = grant
    }

    func update(_ grant: Grant) throws {
        guard var former = try stored(grant.id) else {
            throw StoreError(.conflict, "There is no grant \(grant.id) to update.")
        }
        guard !former.forbids(grant) else {
            throw StoreError(.conflict, "The user of grant \(grant.id) was deleted.")
        }
        // Leases are not part of the row. Grants are compared once and not copied: each refresh gets here.
        let formerLease = former.lease
        former.setLease(grant.lease)
        let keepsRow = former == grant
        guard !keepsRow || formerLease != grant.lease else { return }
        try perform { () throws(StoreError) in
            guard !keepsRow else { return }
            let extent = SQLiteGrantRow.extent(of: grant, from: former)
            try connection.run(extent.update) { SQLiteGrantRow.bindUpdate(grant, extent: extent, to: $0) }
        }
        if formerLease != grant.lease {
            leaseChanges.set(grant.lease, of: grant.id, ending: formerLease?.claim)
        }
        grants[grant.id] = grant
        noteWipe(of: former, by: grant)
    }

    func replace(_ claimed: Grant, by grant: Grant) throws -> Bool {
        // A grant that this transaction has handled already is compared with what it holds.
        guard let lease = claimed.lease, let revision = lease.rowVersion.number, grant.lease == nil,
            grants.isEmpty || grants.index(forKey: claimed.id) == nil
        else { return try replaceIfSame(claimed, by: grant) }
        guard !claimed.forbids(grant) else {
            throw StoreError(.conflict, "The user of grant \(claimed.id) was deleted.")
        }
        let extent = SQLiteGrantRow.extent(of: grant, from: claimed)
        let isSame = try perform { () throws(StoreError) in
            try update(ofClaimed: extent).run { statement in
                SQLiteGrantRow.bindUpdate(grant, extent: extent, to: statement)
                statement.bind(revision)
                statement.bind(lease.claim)
            }
            return connection.changedRows == 1
        }
        guard isSame else { return false }
        leaseChanges.endClaim(lease.claim, of: claimed.id)
        // The other extents leave the keys of both tokens as they are.
        if extent == .all { noteWipe(of: claimed, by: grant) }
        return true
    }

    /// Returns the update of a claimed grant; the usual one is kept, because each refresh needs it.
    private func update(ofClaimed extent: SQLiteGrantRow.Extent) throws(StoreError) -> Statement {
        guard extent == .refresh else { return try connection.prepared(extent.updateOfClaimed) }
        if let refreshUpdate { return refreshUpdate }
        let statement = try connection.prepared(extent.updateOfClaimed)
        refreshUpdate = statement
        return statement
    }

    /// Notes if an update deletes a token, which must then leave the log as well.
    private func noteWipe(of former: Grant, by grant: Grant) {
        let wipesRefreshToken = former.refreshToken != nil && grant.refreshToken == nil
        let wipesAccessToken = former.accessToken != nil && grant.accessToken == nil
        if wipesRefreshToken || wipesAccessToken { wipes = true }
    }

    func record(_ event: GrantEvent) throws {
        try perform { () throws(StoreError) in
            try connection.run(Self.insertEvent) {
                $0.bind(event.grant.rawValue)
                $0.bind(event.at)
                $0.bind(event.kind.rawValue)
                $0.bind(event.from?.rawValue)
                $0.bind(event.to.rawValue)
                $0.bind(event.reason.rawValue)
                $0.bind(event.generation)
            }
            try connection.run(Self.trimEvents) { $0.bind(event.grant.rawValue) }
        }
        guard noticeNonces != nil, let content = Notice.content(for: event), let grant = try stored(event.grant) else {
            return
        }
        try notify(content, ofUser: grant.userID, at: event.at)
    }

    func notify(_ content: Notice.Content, ofUser userID: String, at now: Timestamp) throws {
        guard let noticeNonces else { return }
        try insertNotice(content, ofUser: userID, at: now, nonce: noticeNonces.nextBits())
    }

    func clientHealth(_ clientID: String) throws -> [UInt8]? {
        try perform { () throws(StoreError) in
            try connection.first(Self.selectHealth, bind: { $0.bind(clientID) }) {
                (row: inout SQLiteRow) throws(StoreError) in
                row.optionalBlob() ?? []
            }
        }
    }

    func setClientHealth(_ health: [UInt8], of clientID: String) throws {
        try perform { () throws(StoreError) in
            try connection.run(Self.upsertHealth) {
                $0.bind(clientID)
                $0.bind(health)
                $0.bind(timeSource.now)
            }
        }
    }

    private func stored(_ id: GrantID) throws(StoreError) -> Grant? {
        if let grant = grants[id], isOpen, failure == nil { return grant }
        return caching(
            try perform { () throws(StoreError) in
                try connection.first(.grantByID, bind: { $0.bind(id.rawValue) }, read: SQLiteGrantRow.read)
            }
        )
    }

    private func caching(_ grant: Grant?) -> Grant? {
        guard let grant else { return nil }
        let present = withPresentLease(grant)
        grants[grant.id] = present
        return present
    }

    /// Makes later reads see a change that was not made grant by grant.
    func forgetGrants() { grants = [:] }

    /// Returns a grant that was read from the file with the lease that this transaction gives it.
    func withPresentLease(_ grant: Grant) -> Grant { leaseChanges.applied(to: grant) }

    func perform<Value>(_ body: () throws(StoreError) -> Value) throws(StoreError) -> Value {
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

package import Clocks
package import Store

extension Query {
    static let claimable = Query(
        "claimable",
        "SELECT \(GrantRow.columns), revision FROM \(GrantRow.source) WHERE id = ?1 AND due_at <= ?2"
    )
    static let claimableAnyTime = Query(
        "claimable whenever due",
        """
        SELECT \(GrantRow.columns), revision FROM \(GrantRow.source)
        WHERE id = ?1 AND (state NOT IN (\(GrantState.refreshEndingList)) OR revocation_asked_at IS NOT NULL)
        """
    )
    static let writeLease = Query(
        "write lease",
        "INSERT OR REPLACE INTO \(LeaseFile.schema).leases (owner, epoch, until, grant_id, claim) VALUES (?, ?, ?, ?, "
            + "?)"
    )
    static let removeLease = Query(
        "remove lease",
        "DELETE FROM \(LeaseFile.schema).leases WHERE grant_id = ?1 AND claim = ?2"
    )
    static let renewLease = Query(
        "renew lease",
        "UPDATE \(LeaseFile.schema).leases SET until = ?1 WHERE grant_id = ?2 AND claim = ?3 AND epoch = ?4 AND until "
            + "> ?5"
    )
}

extension SQLiteStore {
    package func claim(
        _ ids: [GrantID],
        dueBy: Timestamp?,
        owner: String,
        for span: Duration
    ) async throws -> [Grant] {
        try await writer.run { [self] connection throws(StoreError) in
            try connection.write(.leases) { () throws(StoreError) in
                let time = leaseTimeNow
                let until = time.instant + span
                let select = try connection.prepared(dueBy == nil ? .claimableAnyTime : .claimable)
                let insert = try connection.prepared(.writeLease)
                var reader = GrantReader()
                var claimed: [Grant] = []
                claimed.reserveCapacity(ids.count)
                let bindConstants = { (statement: Statement) in
                    statement.bind(owner)
                    statement.bind(time.epoch)
                    statement.bind(until.milliseconds)
                }
                try insert.withConstants(bindConstants) { () throws(StoreError) in
                    for id in ids {
                        var revision: Int64?
                        let found = try select.first(
                            bind: { statement in
                                statement.bind(id.rawValue)
                                if let dueBy { statement.bind(dueBy) }
                            },
                            read: { (row: inout Row) throws(StoreError) in
                                let grant = try reader.read(&row)
                                revision = row.integer()
                                return grant
                            }
                        )
                        guard var grant = found, !(grant.lease?.isLive(at: time) ?? false) else { continue }
                        var lease = Lease(
                            owner: owner,
                            claim: Int64(random.nextBits() >> 1),
                            epoch: time.epoch,
                            until: until,
                            followsUnfinishedClaim: grant.lease != nil
                        )
                        lease.rowVersion = RowVersion(revision)
                        try insert.run { statement in
                            statement.bind(id.rawValue)
                            statement.bind(lease.claim)
                        }
                        grant.setLease(lease)
                        claimed.append(grant)
                    }
                }
                return claimed
            }
        }
    }

    package func renew(_ leases: [GrantID: Int64], for span: Duration) async throws -> Set<GrantID> {
        try await writer.run { [self] connection throws(StoreError) in
            try connection.write(.leases) { () throws(StoreError) in
                let time = leaseTimeNow
                var renewed: Set<GrantID> = []
                for (id, claim) in leases {
                    try connection.run(.renewLease) { statement in
                        statement.bind((time.instant + span).milliseconds)
                        statement.bind(id.rawValue)
                        statement.bind(claim)
                        statement.bind(time.epoch)
                        statement.bind(time.instant.milliseconds)
                    }
                    if connection.changedRows == 1 { renewed.insert(id) }
                }
                return renewed
            }
        }
    }

    package func release(_ leases: [GrantID: Int64]) async throws {
        try await writer.run { connection throws(StoreError) in
            try connection.write(.leases) { () throws(StoreError) in
                for (id, claim) in leases { try connection.removeLease(of: id, claim: claim) }
            }
        }
    }
}

/// The changes of leases in a transaction, which follow its commit.
struct LeaseChanges {
    struct Change {
        /// The claim that ends.
        var ended: Int64?
        var lease: Lease?
    }

    /// The claims that ended with a result, which is the usual change.
    private(set) var results: [(grant: GrantID, claim: Int64)] = []
    /// All other changes.
    private(set) var others: [GrantID: Change] = [:]

    var isEmpty: Bool { results.isEmpty && others.isEmpty }

    /// Ends the claim of a grant whose lease this transaction has not changed before.
    mutating func endClaim(_ claim: Int64, of id: GrantID) {
        results.append((id, claim))
    }

    mutating func set(_ lease: Lease?, of id: GrantID, ending claim: Int64?) {
        others[id, default: Change(ended: claim)].lease = lease
    }

    /// Returns the grant with the lease that this transaction gives it.
    func applied(to grant: Grant) -> Grant {
        guard !isEmpty else { return grant }
        var grant = grant
        if let change = others[grant.id] {
            grant.setLease(change.lease)
        } else if results.contains(where: { $0.grant == grant.id }) {
            grant.setLease(nil)
        }
        return grant
    }
}

extension SQLiteConnection {
    fileprivate func removeLease(of id: GrantID, claim: Int64) throws(StoreError) {
        try prepared(.removeLease).removeLease(of: id, claim: claim)
    }

    /// Applies a transaction's changes of leases, after its commit.
    ///
    /// Results come first: a process that is killed in between leaves a lease that runs out, but never ends a lease
    /// without storing its result.
    func apply(_ changes: LeaseChanges) {
        guard !changes.isEmpty else { return }
        do {
            try writeLeases { () throws(StoreError) in
                let remove = try prepared(.removeLease)
                for (id, claim) in changes.results { try remove.removeLease(of: id, claim: claim) }
                for (id, change) in changes.others {
                    if let lease = change.lease {
                        try write(lease: lease, of: id)
                    } else if let claim = change.ended {
                        try remove.removeLease(of: id, claim: claim)
                    }
                }
            }
        } catch {
            // The results are stored, and these leases run out by themselves.
            return
        }
    }

    private func write(lease: Lease, of id: GrantID) throws(StoreError) {
        try run(.writeLease) { statement in
            statement.bind(lease.owner)
            statement.bind(lease.epoch)
            statement.bind(lease.until.milliseconds)
            statement.bind(id.rawValue)
            statement.bind(lease.claim)
        }
    }
}

extension Statement {
    /// Runs `Query.removeLease`.
    fileprivate func removeLease(of id: GrantID, claim: Int64) throws(StoreError) {
        try run { statement in
            statement.bind(id.rawValue)
            statement.bind(claim)
        }
    }
}

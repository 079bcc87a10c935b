package import Clocks
package import Store

extension Query {
    static let claimable = Query(
        "claimable",
        "SELECT \(GrantRow.columns) FROM \(GrantRow.source) WHERE id = ?1 AND due_at <= ?2"
    )
    static let claimableAnyTime = Query(
        "claimable whenever due",
        """
        SELECT \(GrantRow.columns) FROM \(GrantRow.source)
        WHERE id = ?1 AND (state NOT IN (\(GrantState.refreshEndingList)) OR revocation_asked_at IS NOT NULL)
        """
    )
    static let writeLease = Query(
        "write lease",
        "INSERT OR REPLACE INTO \(LeaseFile.schema).leases (grant_id, owner, claim, epoch, until) VALUES (?, ?, ?, ?, "
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
                var claimed: [Grant] = []
                for id in ids {
                    let stored = try connection.first(
                        dueBy == nil ? .claimableAnyTime : .claimable,
                        bind: { statement in
                            statement.bind(id.rawValue)
                            if let dueBy { statement.bind(dueBy) }
                        },
                        read: GrantRow.read
                    )
                    guard var grant = stored, !(grant.lease?.isLive(at: time) ?? false) else { continue }
                    let claim = Int64(random.nextBits() >> 1)
                    var lease = Lease(owner: owner, claim: claim, epoch: time.epoch, until: time.instant + span)
                    lease.followsUnfinishedClaim = grant.lease != nil
                    try connection.write(lease: lease, of: id)
                    grant.setLease(lease)
                    claimed.append(grant)
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

/// The change of a lease in a transaction: the claim that ends, and its replacement.
struct LeaseChange {
    var ended: Int64?
    var lease: Lease?
}

extension SQLiteConnection {
    /// Replaces a grant's stored lease.
    fileprivate func write(lease: Lease, of id: GrantID) throws(StoreError) {
        try run(.writeLease) { statement in
            statement.bind(id.rawValue)
            statement.bind(lease.owner)
            statement.bind(lease.claim)
            statement.bind(lease.epoch)
            statement.bind(lease.until.milliseconds)
        }
    }

    fileprivate func removeLease(of id: GrantID, claim: Int64) throws(StoreError) {
        try run(.removeLease) { statement in
            statement.bind(id.rawValue)
            statement.bind(claim)
        }
    }

    /// Applies a transaction's changes of leases, after its commit.
    ///
    /// Results come first: a process that is killed in between leaves a lease that runs out, but never ends a lease
    /// without storing its result.
    func apply(_ changes: [GrantID: LeaseChange]) {
        guard !changes.isEmpty else { return }
        do {
            try writeLeases { () throws(StoreError) in
                for (id, change) in changes {
                    if let lease = change.lease {
                        try write(lease: lease, of: id)
                    } else if let claim = change.ended {
                        try removeLease(of: id, claim: claim)
                    }
                }
            }
        } catch {
            // The results are stored, and these leases run out by themselves.
            return
        }
    }
}

package import Base

extension SQLiteStore {
    /// The numbers of grants that one statement of a claim handles, the largest first. A statement for many costs half
    /// as much for each. A claim takes the largest that fits, again and again, so that the statements stay prepared.
    static let claimSizes = [25, 5, 1]

    /// For each of ``claimSizes`` the query of grants that are due by the last parameter.
    static let claimable = claimSizes.map { size in
        SQLQuery("claimable \(size)", sql: "\(claimed(size)) WHERE due_at <= ?")
    }
    static let claimableAnyTime = claimSizes.map { size in
        SQLQuery(
            "claimable \(size) whenever due",
            sql:
                "\(claimed(size)) WHERE state NOT IN (\(GrantState.refreshEndingList)) OR revocation_asked_at IS NOT NULL"
        )
    }
    static let writeLeases = claimSizes.map { size in
        SQLQuery(
            "write \(size) leases",
            sql: """
                INSERT OR REPLACE INTO \(LeaseFile.schema).leases (owner, epoch, until, grant_id, claim)
                VALUES (?1, ?2, ?3, ?, ?)\(String(repeating: ", (?1, ?2, ?3, ?, ?)", count: size - 1))
                """
        )
    }
    static let writeLease = writeLeases[claimSizes.count - 1]

    /// Selects grants in the order of the parameters: CROSS JOIN keeps SQLite from choosing another one.
    private static func claimed(_ size: Int) -> String {
        """
        SELECT \(SQLiteGrantRow.columns), revision
        FROM (VALUES (?)\(String(repeating: ", (?)", count: size - 1))) AS wanted
            CROSS JOIN \(SQLiteGrantRow.source(on: "id = wanted.column1"))
        """
    }

    static let removeLease = SQLQuery(
        "remove lease",
        sql: "DELETE FROM \(LeaseFile.schema).leases WHERE grant_id = ?1 AND claim = ?2"
    )
    static let renewLease = SQLQuery(
        "renew lease",
        sql: "UPDATE \(LeaseFile.schema).leases SET until = ?1 WHERE grant_id = ?2 AND claim = ?3 AND epoch = ?4"
    )
}

extension SQLiteStore {
    package func claim(
        _ ids: [GrantID],
        dueBy: Timestamp?,
        owner: String,
        for span: Duration,
        takesOver: Bool
    ) async throws -> [Grant] {
        try await writer.run { [self] connection throws(StoreError) in
            try connection.write { () throws(StoreError) -> [Grant] in
                let time = leaseTimeNow
                guard try connection.integer(.readPause) <= time.instant.milliseconds else { return [] }
                let until = time.instant + span
                var reader = GrantRowReader()
                var claimed: [Grant] = []
                claimed.reserveCapacity(ids.count)
                var leases: [(id: Int64, claim: Int64)] = []
                leases.reserveCapacity(ids.count)
                try connection.inRuns(of: ids, by: dueBy == nil ? Self.claimableAnyTime : Self.claimable) {
                    (select, ids) throws(StoreError) in
                    try select.forEachRow { statement in
                        for id in ids { statement.bind(id.rawValue) }
                        if let dueBy { statement.bind(dueBy) }
                    } read: { (row: inout SQLiteRow) throws(StoreError) in
                        var grant = try reader.read(&row)
                        let id = grant.id.rawValue
                        if let former = grant.lease, !former.isFree(at: time, takesOver: takesOver) { return }
                        if leases.contains(where: { $0.id == id }) { return }
                        var lease = Lease(
                            owner: owner,
                            claim: Int64(random.nextBits() >> 1),
                            epoch: time.epoch,
                            until: until,
                            followsUnfinishedClaim: grant.hasUnfinishedClaim
                        )
                        lease.revision = row.integer()
                        grant.setLease(lease)
                        leases.append((id, lease.claim))
                        claimed.append(consume grant)
                    }
                }
                try connection.inRuns(of: leases, by: Self.writeLeases) { (insert, leases) throws(StoreError) in
                    try insert.run { statement in
                        statement.bind(owner)
                        statement.bind(time.epoch)
                        statement.bind(until.milliseconds)
                        for lease in leases {
                            statement.bind(lease.id)
                            statement.bind(lease.claim)
                        }
                    }
                }
                return claimed
            }
        }
    }

    package func renew(_ leases: [GrantID: Int64], for span: Duration) async throws -> Set<GrantID> {
        try await writer.run { [self] connection throws(StoreError) in
            try connection.write { () throws(StoreError) in
                let time = leaseTimeNow
                var renewed: Set<GrantID> = []
                for (id, claim) in leases {
                    try connection.run(Self.renewLease) { statement in
                        statement.bind((time.instant + span).milliseconds)
                        statement.bind(id.rawValue)
                        statement.bind(claim)
                        statement.bind(time.epoch)
                    }
                    if connection.changedRows == 1 { renewed.insert(id) }
                }
                return renewed
            }
        }
    }

    package func release(_ leases: [GrantID: Int64]) async throws {
        try await writer.run { connection throws(StoreError) in
            try connection.write { () throws(StoreError) in
                let remove = try connection.prepared(Self.removeLease)
                for (id, claim) in leases { try remove.removeLease(of: id, claim: claim) }
            }
        }
    }
}

/// The changes of leases in a transaction, which follow its commit.
struct LeaseChanges {
    /// The claims that ended with a result, which is the usual change.
    private(set) var results: [(grant: GrantID, claim: Int64)] = []
    /// The claim that ends, and the new lease, of other grants.
    private(set) var others: [GrantID: (ended: Int64?, lease: Lease?)] = [:]

    var isEmpty: Bool { results.isEmpty && others.isEmpty }

    /// Ends the claim of a grant whose lease this transaction has not changed before.
    mutating func endClaim(_ claim: Int64, of id: GrantID) { results.append((id, claim)) }

    mutating func set(_ lease: Lease?, of id: GrantID, ending claim: Int64?) {
        others[id, default: (claim, nil)].lease = lease
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
    /// Passes parts of a list, in order, with the statement for each: `queries` has one for each of
    /// ``SQLiteStore/claimSizes``.
    fileprivate func inRuns<Element>(
        of elements: [Element],
        by queries: [SQLQuery],
        _ body: (Statement, ArraySlice<Element>) throws(StoreError) -> Void
    ) throws(StoreError) {
        var rest = elements[...]
        for (size, query) in zip(SQLiteStore.claimSizes, queries) where rest.count >= size {
            let statement = try prepared(query)
            while rest.count >= size {
                try body(statement, rest.prefix(size))
                rest = rest.dropFirst(size)
            }
        }
    }

    /// Applies a transaction's changes of leases, after its commit. Results come first: a process that is killed in
    /// between leaves a lease that runs out, but never ends a lease without storing its result.
    func apply(_ changes: LeaseChanges) {
        guard !changes.isEmpty else { return }
        do {
            try writeLeases { () throws(StoreError) in
                let remove = try prepared(SQLiteStore.removeLease)
                for (id, claim) in changes.results { try remove.removeLease(of: id, claim: claim) }
                for (id, change) in changes.others {
                    if let lease = change.lease {
                        let values: [SQLValue] = [
                            .text(lease.owner), .text(lease.epoch), .integer(lease.until.milliseconds),
                        ]
                        let grant: [SQLValue] = [.integer(id.rawValue), .integer(lease.claim)]
                        try run(SQLStatement(SQLiteStore.writeLease, values + grant))
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
}

extension Statement {
    /// Runs `SQLiteStore.removeLease`.
    fileprivate func removeLease(of id: GrantID, claim: Int64) throws(StoreError) {
        try run {
            $0.bind(id.rawValue)
            $0.bind(claim)
        }
    }
}

extension Grant {
    /// `true` if its lease is of a claim that had neither a result nor a release.
    fileprivate var hasUnfinishedClaim: Bool {
        guard let lease else { return false }
        return !lease.isOfEndedRequest
    }
}

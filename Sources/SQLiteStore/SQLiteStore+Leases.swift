package import Clocks
package import Store

extension SQLiteStore {
    /// A lease stands in nobody's way once it is over, or when it is of another boot.
    private static let isFree = "(lease_owner IS NULL OR lease_epoch <> ?3 OR lease_until <= ?4)"
    private static let takeLease =
        "UPDATE grants SET lease_owner = ?1, lease_claim = ?2, lease_epoch = ?3, lease_until = ?5 WHERE id = ?6"

    private static let claimDue = Query(
        "claim",
        "\(takeLease) AND due_at <= ?7 AND \(isFree) RETURNING \(GrantRow.columns)"
    )
    private static let claimAny = Query(
        "claim whenever due",
        """
        \(takeLease) AND (state NOT IN ('reauth_required', 'disconnected') OR revocation_asked_at IS NOT NULL)
            AND \(isFree) RETURNING \(GrantRow.columns)
        """
    )
    private static let renewLease = Query(
        "renew lease",
        """
        UPDATE grants SET lease_until = ?1
        WHERE id = ?2 AND lease_claim = ?3 AND lease_epoch = ?4 AND lease_until > ?5
        """
    )
    private static let releaseLease = Query(
        "release lease",
        """
        UPDATE grants SET lease_owner = NULL, lease_claim = NULL, lease_epoch = NULL, lease_until = NULL
        WHERE id = ?1 AND lease_claim = ?2
        """
    )

    package func claim(
        _ ids: [GrantID],
        dueBy: Timestamp?,
        owner: String,
        for span: Duration
    ) async throws -> [Grant] {
        try await writer.run { [self] connection throws(StoreError) in
            // Who claims is about to ask for tokens: they must be stored where the next process finds them. What was asked
            // for before may still be written, since a file that was renamed can be put back.
            guard !connection.hasMoved else {
                throw StoreError(
                    .cannotOpen,
                    "The database \(path) was deleted, renamed or replaced while it is in use, so nothing is refreshed. Put it "
                        + "back, or restart every worker to use the file that is there now."
                )
            }
            return try connection.write { () throws(StoreError) in
                let time = leaseTimeNow
                var claimed: [Grant] = []
                for id in ids {
                    let grant = try connection.first(
                        dueBy == nil ? Self.claimAny : Self.claimDue,
                        bind: { statement in
                            statement.bind(owner)
                            statement.bind(Int64(random.nextBits() >> 1))
                            statement.bind(time.epoch)
                            statement.bind(time.instant.milliseconds)
                            statement.bind((time.instant + span).milliseconds)
                            statement.bind(id.rawValue)
                            if let dueBy { statement.bind(dueBy) }
                        },
                        read: GrantRow.read
                    )
                    if let grant { claimed.append(grant) }
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
            try connection.write { () throws(StoreError) in
                for (id, claim) in leases {
                    try connection.run(Self.releaseLease) { statement in
                        statement.bind(id.rawValue)
                        statement.bind(claim)
                    }
                }
            }
        }
    }
}

package import Clocks

/// Ends a grant at a user's request, and decides if Google is notified.
package enum GrantEnding {
    /// The result of ending a grant.
    package struct Outcome: Hashable, Sendable {
        /// The grant as it is stored now.
        package let grant: Grant
        /// `true` if a revocation would end another stored grant too, so Google is not notified.
        package let isShared: Bool
    }

    /// Stores the end of `grant`, and its events.
    ///
    /// A revocation ends every grant of the account with any client of the same project
    /// (https://developers.google.com/identity/protocols/oauth2/web-server#tokenrevoke).
    package static func end(
        _ grant: Grant,
        reason: GrantReason,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> Outcome {
        let isShared = try isShared(grant, in: transaction)
        var grant = grant
        let events = grant.disconnectByRequest(revokes: !isShared, reason: reason, at: now)
        try transaction.update(grant)
        for event in events { try transaction.record(event) }
        return Outcome(grant: grant, isShared: isShared)
    }

    /// `true` if a revocation would also end another stored grant that is not to be revoked.
    ///
    /// It is checked again before each attempt to revoke: since the first one the account may have been connected
    /// again.
    package static func isShared(_ grant: Grant, in transaction: any StoreTransaction) throws -> Bool {
        try transaction.grants(sharingAccountWith: grant).contains { other in
            other.revocationAskedAt == nil && !other.hasTokenOfAnotherAccount
                && ClientProject.same(other.clientID, grant.clientID)
        }
    }
}

package import Clocks

/// Ends a grant at a user's wish, and decides whether Google is to be told.
package enum GrantEnding {
    /// What was done.
    package struct Outcome: Hashable, Sendable {
        /// The grant as it is stored now.
        package let grant: Grant
        /// Whether another stored grant would end with this one at Google, which therefore is not told.
        package let isShared: Bool
    }

    /// Stores the end of `grant`, and its events.
    ///
    /// Revoking ends every grant of the account with any client of the same project
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

    /// Whether another stored grant, that has not been asked to end itself, would end with this one at Google.
    ///
    /// It is asked again before each try to tell Google: while that failed, the account may have been connected anew.
    package static func isShared(_ grant: Grant, in transaction: any StoreTransaction) throws -> Bool {
        try transaction.grants(sharingAccountWith: grant).contains { other in
            other.revocationAskedAt == nil && !other.hasForeignToken
                && ClientProject.same(other.clientID, grant.clientID)
        }
    }
}

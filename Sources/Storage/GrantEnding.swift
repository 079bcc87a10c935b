package import Base
private import Crypto

/// Ends a grant at a user's request, and decides if Google is notified.
package enum GrantEnding {
    /// The result of ending a grant.
    package struct Outcome: Hashable, Sendable {
        /// The grant as it is stored now.
        package let grant: Grant
        /// `true` if a revocation would end another stored grant too, so Google is not notified.
        package let isShared: Bool
    }

    /// Stores the end of a grant, and its events.
    ///
    /// A revocation ends every grant of the account with any client of the same project
    /// (https://developers.google.com/identity/protocols/oauth2/web-server#tokenrevoke).
    package static func end(
        _ stored: Grant,
        reason: GrantReason,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> Outcome {
        let isShared = try isShared(stored, in: transaction)
        var grant = stored
        let events = grant.disconnectByRequest(revokes: !isShared, reason: reason, at: now)
        try transaction.rememberRefreshToken(of: stored, at: now)
        try transaction.update(grant)
        for event in events { try transaction.record(event) }
        return Outcome(grant: grant, isShared: isShared)
    }

    /// Returns `true` if a claimed revocation can be sent: the grant has not been connected again, and no other grant
    /// would end with it.
    ///
    /// It is checked before each attempt, because the account can have been connected since the first one. A revocation
    /// that would end another grant is over.
    package static func mayRevoke(_ id: GrantID, in transaction: any StoreTransaction) throws -> Bool {
        guard var grant = try transaction.grant(id), grant.revocationAskedAt != nil else { return false }
        guard try isShared(grant, in: transaction) else { return true }
        grant.finishRevocation()
        try transaction.update(grant)
        return false
    }

    /// Makes the grants due that a revocation of this one has ended at Google: those of the same account that were
    /// connected while it was in flight.
    package static func probeGrants(
        endedWith grant: Grant,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws {
        for var other in try grants(endedWith: grant, in: transaction) {
            other.probeNow(at: now)
            try transaction.update(other)
        }
    }

    private static func isShared(_ grant: Grant, in transaction: any StoreTransaction) throws -> Bool {
        try !grants(endedWith: grant, in: transaction).isEmpty
    }

    /// Returns the other grants that a revocation would end although they are not to be revoked.
    private static func grants(endedWith grant: Grant, in transaction: any StoreTransaction) throws -> [Grant] {
        try transaction.grants(sharingAccountWith: grant).filter { other in
            other.revocationAskedAt == nil && !other.hasTokenOfAnotherAccount
                && ClientProject.same(other.clientID, grant.clientID)
        }
    }
}

extension StoreTransaction {
    /// Remembers the refresh token that the user is about to end or to replace, so that no import brings it back.
    ///
    /// Its date does not tell: a former backend that refreshes its own copy writes a newer one. It lives on at Google
    /// if another user has the same account.
    package func rememberRefreshToken(of grant: Grant, at now: Timestamp) throws {
        guard let identifier = Self.identifier(of: grant.refreshToken, in: grant.id) else { return }
        _ = try record(securityEvent: identifier, at: now)
    }

    /// `true` if the user of the grant has ended or replaced this refresh token here.
    package func hasLeft(_ token: Grant.RefreshToken?, of grant: Grant) throws -> Bool {
        guard let identifier = Self.identifier(of: token, in: grant.id) else { return false }
        return try hasRecorded(securityEvent: identifier)
    }

    private static func identifier(of token: Grant.RefreshToken?, in grant: GrantID) -> String? {
        token?.marks.map { "left-refresh-token:\(grant):\(Hexadecimal.encode($0.digest.bytes))" }
    }
}

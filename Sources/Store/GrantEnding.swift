package import Clocks
private import Secrets

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

package import Base
package import Crypto

/// The end of a grant at a user's request, and the decision if Google is notified.
package struct GrantDisconnection: Hashable, Sendable {
    /// The grant as it is stored now.
    package let grant: Grant
    /// The state that it had before.
    package let formerState: GrantState
    /// `true` if a revocation would end another stored grant too, so Google is not notified.
    package let isShared: Bool

    /// Stores the end of a grant, and its events. A revocation ends every grant of the account with any client of the
    /// same project (https://developers.google.com/identity/protocols/oauth2/web-server#tokenrevoke).
    package static func end(
        _ stored: Grant,
        reason: GrantReason,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> GrantDisconnection {
        let isShared = try Self.isShared(stored, in: transaction, at: now)
        var grant = stored
        let events = grant.disconnectByRequest(revokes: !isShared, reason: reason, at: now)
        if reason == .userDeleted {
            // No import stores a grant of the user while the tombstone exists, and a later grant has another id.
            try transaction.forgetLeftTokens(of: stored.id)
        } else {
            try transaction.rememberRefreshToken(of: stored, at: now)
        }
        try transaction.update(grant)
        for event in events { try transaction.record(event) }
        return GrantDisconnection(grant: grant, formerState: stored.state, isShared: isShared)
    }

    /// Ends a user's grant at an operator's request, or returns `nil` if there is none.
    package static func end(
        grantOfUser user: String,
        connection: ConnectionID,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> GrantDisconnection? {
        guard let grant = try transaction.grant(ofUser: user, connection: connection) else { return nil }
        guard grant.reason != .userDeleted else { return nil }
        return try end(grant, reason: .userRequest, in: transaction, at: now)
    }

    /// Returns `true` if a claimed revocation must still be sent. One that would end another grant too is finished
    /// without it. Called before each attempt, because the grant, or another one of the account, can have been connected
    /// since.
    package static func mustRevoke(
        _ id: GrantID,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> Bool {
        guard var grant = try transaction.grant(id), grant.revocationAskedAt != nil else { return false }
        guard try isShared(grant, in: transaction, at: now) else { return true }
        grant.finishRevocation()
        try transaction.update(grant)
        return false
    }

    /// Makes the grants due that a revocation of this one has ended at Google: those of the same account that were
    /// connected while it was in flight.
    package static func makeGrantsDue(
        endedWith grant: Grant,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws {
        try probe(grants(endedWith: grant, in: transaction, at: now), in: transaction, at: now)
    }

    /// Makes the grants due that the revocation of a token of this account has ended, which belongs to no stored grant.
    package static func makeGrantsDue(
        ofAccount account: String,
        clientID: String,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws {
        let grants = try transaction.grants(ofGoogleUser: account).filter {
            $0.isEnded(byRevocationFor: clientID, at: now)
        }
        try probe(grants, in: transaction, at: now)
    }

    private static func probe(_ grants: [Grant], in transaction: any StoreTransaction, at now: Timestamp) throws {
        for var grant in grants {
            grant.makeDueNow(at: now)
            try transaction.update(grant)
        }
    }

    /// Returns `true` if the revocation of a token that belongs to no stored grant would end one that does. `account`
    /// is the owner of the token at Google, and `userID` the user who has brought it.
    ///
    /// An import need not name the account. So a grant of any user might have its e-mail address alone, and a connection
    /// of that user whose account is unknown might be of this one.
    package static func isShared(
        _ token: Secret,
        ofAccount account: Grant.Owner,
        broughtBy userID: String,
        clientID: String,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> Bool {
        if try !transaction.grants(withRefreshTokenMark: TokenMarks(of: token).digest).isEmpty { return true }
        let unknown = try transaction.grants(ofUser: userID).filter { $0.owner.googleUserID?.isEmpty ?? true }
        var grants = try unknown + transaction.grants(withTokenOf: account, except: nil)
        if let id = account.googleUserID { grants += try transaction.grants(ofGoogleUser: id) }
        return grants.contains { $0.isEnded(byRevocationFor: clientID, at: now) }
    }

    private static func isShared(
        _ grant: Grant,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> Bool {
        try !grants(endedWith: grant, in: transaction, at: now).isEmpty
    }

    /// Returns the other grants that a revocation would end although they are not to be revoked: those of the account,
    /// and those with the same token, whose account might not be known.
    private static func grants(
        endedWith grant: Grant,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> [Grant] {
        var others = try transaction.grants(sharingAccountWith: grant)
        if let mark = grant.refreshToken?.marks?.digest {
            let known = Set(others.map(\.id))
            others += try transaction.grants(withRefreshTokenMark: mark).filter {
                $0.id != grant.id && !known.contains($0.id)
            }
        }
        return others.filter { $0.isEnded(byRevocationFor: grant.clientID, at: now) }
    }
}

extension Grant {
    /// `true` if the revocation of a token of the same account ends this grant, which is not to be revoked.
    fileprivate func isEnded(byRevocationFor clientID: String, at now: Timestamp) -> Bool {
        guard mightBeAlive(at: now), revocationAskedAt == nil, !hasTokenOfAnotherAccount else { return false }
        return GoogleProject.isShared(self.clientID, clientID)
    }

    private func mightBeAlive(at now: Timestamp) -> Bool {
        switch state {
        case .active, .retrying, .suspended: true
        // Google asks for the user, or the client id is wrong: the token itself might live.
        case .reauthRequired: refreshToken != nil
        // A grant that Google ended an hour ago is dead already. A wave undoes only ends of the last ten minutes.
        case .disconnected: canBeRecalled && now - since < .seconds(3600)
        }
    }
}

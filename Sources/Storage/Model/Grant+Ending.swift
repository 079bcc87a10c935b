package import Base
package import Crypto

/// The ends of a grant.
extension Grant {
    /// Ends the grant until the user signs in again. The refresh token of another account stays, sealed, and is not
    /// used again: an import might have named a wrong account and brought the only copy of the token.
    package mutating func requireSignIn(reason: GrantReason, at now: Timestamp) -> [GrantEvent] {
        let events = end(as: .reauthRequired, reason: reason, at: now)
        if hasTokenOfAnotherAccount { accessToken = nil }
        return events
    }

    /// Ends the grant because Google said that it has ended. The sealed tokens stay: the answer might turn out to be
    /// part of a wave.
    package mutating func disconnect(reason: GrantReason, at now: Timestamp) -> [GrantEvent] {
        let consentedAt = refreshToken?.consentedAt
        return end(as: .disconnected, reason: reason, at: now).map { event in
            var event = event
            event.consentedAt = consentedAt
            return event
        }
    }

    /// Ends the grant because the user asked for it, or was deleted.
    ///
    /// With `revokes` its tokens are kept until the revocation at Google is done, else they are deleted at once. The
    /// refresh token of another account is never revoked.
    package mutating func disconnectByRequest(
        revokes: Bool,
        reason: GrantReason = .userRequest,
        at now: Timestamp
    ) -> [GrantEvent] {
        let revokes = revokes && !hasTokenOfAnotherAccount
        let events = end(as: .disconnected, reason: reason, at: now)
        if reason == .userDeleted { scope = "" }
        if revokes, refreshToken != nil || accessToken != nil {
            revocationAskedAt = revocationAskedAt ?? now
            dueAt = now
        } else {
            revocationAskedAt = nil
            wipeTokens()
        }
        return events
    }

    /// Ends the grant because a security event said that its tokens are dead, and deletes them at once.
    ///
    /// The generation grows, so that an answer in flight does not bring them back. A grant that is disconnected already
    /// stays so, with its reason, because there is nothing left to revoke.
    package mutating func disconnectByEvent(reason: GrantReason, at now: Timestamp) -> [GrantEvent] {
        let isOver = state == .disconnected
        let events = isOver ? [] : end(as: .disconnected, reason: reason, at: now)
        revocationAskedAt = nil
        dueAt = nil
        wipeTokens()
        return events
    }

    /// Deletes the tokens after the revocation at Google is done, or has failed for a day.
    package mutating func finishRevocation() {
        revocationAskedAt = nil
        dueAt = nil
        endFailures()
        wipeTokens()
    }

    /// Moves the next attempt after a failed revocation.
    package mutating func postponeRevocation(until dueAt: Timestamp, at now: Timestamp) {
        attempts = min(attempts + 1, 1_000_000)
        lastAttemptAt = now
        self.dueAt = dueAt
    }

    /// `true` if an answer about this version of the refresh token ended the grant, which has not changed since.
    package func wasEndedByAnswer(to generation: Int64) -> Bool {
        state == .disconnected && canBeRecalled && self.generation == generation + 1
    }

    /// `true` if an answer ended or suspended the grant and nothing else has happened to it since, so that a wave can
    /// undo it.
    package var canBeRecalled: Bool {
        guard refreshToken != nil else { return false }
        return switch state {
        case .disconnected: GrantReason.endedByAnswer.contains(reason)
        case .reauthRequired, .suspended: !GrantReason.ofWorker.contains(reason)
        case .active, .retrying: false
        }
    }

    /// Undoes an end or a suspension that an answer in a wave caused: the grant is tried again.
    package mutating func recall(confirmAt dueAt: Timestamp, at now: Timestamp) -> [GrantEvent] {
        guard canBeRecalled else { return [] }
        let former = state
        attempts = 1
        failingSince = now
        suspectedSince = now
        enter(.retrying, reason: reason.unconfirmed, at: now)
        self.dueAt = dueAt
        // The notice of its end might have been dropped meanwhile.
        refreshToken?.isExpiryNoticed = false
        return [GrantEvent(of: self, kind: .state, from: former, at: now)]
    }

    private mutating func end(as ending: GrantState, reason: GrantReason, at now: Timestamp) -> [GrantEvent] {
        let former = state
        generation += 1
        lastAttemptAt = now
        endFailures()
        enter(ending, reason: reason, at: now)
        dueAt = nil
        return [GrantEvent(of: self, kind: .state, from: former, at: now)]
    }

    /// `true` if the grant ended before `end`, nothing is left to revoke, and it still holds what can be forgotten.
    func isForgettable(endedBefore end: Timestamp) -> Bool {
        guard state.endsRefreshes, since < end, revocationAskedAt == nil else { return false }
        return reason != .forgotten && reason != .userDeleted
    }

    /// Deletes the tokens and the account, and keeps the id and the history. The state does not change for the user,
    /// who is connected neither before nor after, so no notice is made.
    mutating func forget(at now: Timestamp) -> GrantEvent {
        let (former, endedAt) = (state, since)
        enter(.disconnected, reason: .forgotten, at: now)
        since = endedAt
        wipeTokens()
        return GrantEvent(of: self, kind: .state, from: former, at: now)
    }

    /// The account data of a deleted user, or of a forgotten grant, is deleted with the tokens.
    private mutating func wipeTokens() {
        refreshToken = nil
        accessToken = nil
        guard [GrantReason.userDeleted, .forgotten].contains(reason) else { return }
        owner = Owner()
        scope = ""
        formerTokensUntil = issuedTokens.end
    }
}

extension Grant {
    /// `true` if the stored refresh token belongs to another Google account than the owner.
    package var hasTokenOfAnotherAccount: Bool { reason == .accountMismatch }

    /// What a person who ends the grant, or tries it again, has seen of it. Differs after each reconnection of a grant
    /// that had ended, also if the app brought no other refresh token.
    package var version: String { "\(id) \(generation) \(since.milliseconds)" }

    /// `true` if the user ended the grant, here or at Google, or did not return until it was forgotten.
    package var wasEndedByUser: Bool {
        let reasons: [GrantReason] = [.userRequest, .userDeleted, .tokenRevoked, .tokensRevoked, .forgotten]
        return state == .disconnected && reasons.contains(reason)
    }

    /// `true` if the user ended the grant here while this version of the refresh token was in use, and nothing else has
    /// changed its tokens since.
    package func wasEndedByRequest(during generation: Int64) -> Bool {
        guard state == .disconnected, self.generation == generation + 1 else { return false }
        return reason == .userRequest || reason == .userDeleted
    }

    /// Throws if storing `next` in place of this grant would bring back deleted data.
    func allow(_ next: Grant) throws(StoreError) {
        guard reason == .userDeleted, next.reason != .userDeleted else { return }
        throw StoreError(.conflict, "The user of grant \(id) was deleted.")
    }
}

/// The end of a grant at a user's request, and the decision if Google is notified.
package struct GrantEnding: Hashable, Sendable {
    /// The grant as it is stored now.
    package let grant: Grant
    /// `true` if a revocation would end another stored grant too, so Google is not notified.
    package let isShared: Bool

    /// Stores the end of a grant, and its events. A revocation ends every grant of the account with any client of the
    /// same project (https://developers.google.com/identity/protocols/oauth2/web-server#tokenrevoke).
    package static func end(
        _ stored: Grant,
        reason: GrantReason,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> GrantEnding {
        let isShared = try Self.isShared(stored, in: transaction, at: now)
        var grant = stored
        let events = grant.disconnectByRequest(revokes: !isShared, reason: reason, at: now)
        if reason == .userDeleted {
            // No import stores the user's grant while the tombstone exists, and a later grant has another id.
            try transaction.forgetLeftTokens(of: stored.id)
        } else {
            try transaction.rememberRefreshToken(of: stored, at: now)
        }
        try transaction.update(grant)
        for event in events { try transaction.record(event) }
        return GrantEnding(grant: grant, isShared: isShared)
    }

    /// Ends the grant of a user at an operator's request, or returns `nil` if there is none.
    package static func end(
        grantOfUser user: String,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> GrantEnding? {
        guard let grant = try transaction.grant(ofUser: user), grant.reason != .userDeleted else { return nil }
        return try end(grant, reason: .userRequest, in: transaction, at: now)
    }

    /// Ends a claimed revocation that would end another grant too, and returns `true` if it can still be sent. Called
    /// before each attempt, because the grant, or another one of the account, can have been connected since.
    package static func endIfShared(
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
    package static func probeGrants(
        endedWith grant: Grant,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws {
        try probe(grants(endedWith: grant, in: transaction, at: now), in: transaction, at: now)
    }

    /// Makes the grants due that the revocation of a token of this account has ended, which belongs to no stored grant.
    package static func probeGrants(
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
            grant.probeNow(at: now)
            try transaction.update(grant)
        }
    }

    /// Returns `true` if the revocation of a token that belongs to no stored grant would end one that does. `account`
    /// is the owner of the token at Google.
    package static func isShared(
        _ token: Secret,
        ofAccount account: String,
        clientID: String,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> Bool {
        if try !transaction.grants(withRefreshTokenMark: TokenMarks(of: token).digest).isEmpty { return true }
        return try transaction.grants(ofGoogleUser: account).contains { $0.isEnded(byRevocationFor: clientID, at: now) }
    }

    private static func isShared(
        _ grant: Grant,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> Bool {
        try !grants(endedWith: grant, in: transaction, at: now).isEmpty
    }

    /// Returns the other grants that a revocation would end although they are not to be revoked.
    private static func grants(
        endedWith grant: Grant,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> [Grant] {
        try transaction.grants(sharingAccountWith: grant).filter {
            $0.isEnded(byRevocationFor: grant.clientID, at: now)
        }
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

extension StoreTransaction {
    /// Remembers the refresh token that the user is about to end or to replace, so that no import brings it back.
    ///
    /// Its date does not tell: a former backend that refreshes its own copy writes a newer one. It lives on at Google
    /// if another user has the same account, for any time, so no clean-up reaches its record.
    package func rememberRefreshToken(of grant: Grant, at now: Timestamp) throws {
        try remember(Self.identifier(of: grant.refreshToken, in: grant.id), of: grant, at: now)
    }

    /// Forgets every token that the user of the grant has left.
    func forgetLeftTokens(of grant: GrantID) throws { try keepLast(0, securityEventsFrom: Self.prefix(of: grant)) }

    /// `true` if the user of the grant has ended or replaced this refresh token here.
    package func hasLeft(_ token: Grant.RefreshToken?, of grant: Grant) throws -> Bool {
        guard let identifier = Self.identifier(of: token, in: grant.id) else { return false }
        return try hasRecorded(securityEvent: identifier)
    }

    /// Remembers the refresh token that the app or an import brought and an answer has replaced, so that a repeated
    /// import does not bring it back.
    ///
    /// Only this worker knows the rotated ones, and a server can rotate every hour, so they are not remembered.
    package func rememberSpentToken(of grant: Grant, at now: Timestamp) throws {
        guard !grant.hasRotatedToken else { return }
        try remember(Self.identifier(of: grant.refreshToken, in: grant.id, isSpent: true), of: grant, at: now)
    }

    /// `true` if the app or an import brought this refresh token for the grant before, and an answer has replaced it.
    package func hasSpent(_ token: Grant.RefreshToken?, of grant: Grant) throws -> Bool {
        guard let identifier = Self.identifier(of: token, in: grant.id, isSpent: true) else { return false }
        return try hasRecorded(securityEvent: identifier)
    }

    private func remember(_ identifier: String?, of grant: Grant, at now: Timestamp) throws {
        guard let identifier else { return }
        _ = try record(securityEvent: identifier, at: now + Retention.leftTokens)
        try keepLast(Retention.leftTokensPerGrant, securityEventsFrom: Self.prefix(of: grant.id))
    }

    private static func identifier(of token: Grant.RefreshToken?, in grant: GrantID, isSpent: Bool = false) -> String? {
        guard let marks = token?.marks else { return nil }
        return prefix(of: grant) + (isSpent ? "spent:" : "") + Hexadecimal.encode(marks.digest.bytes)
    }

    private static func prefix(of grant: GrantID) -> String { "\(Retention.leftTokenPrefix)\(grant):" }
}

/// The Cloud project of client ids.
package enum GoogleProject {
    /// `true` if both client ids belong to one Cloud project: they are equal, or begin with the project's number and a
    /// dash.
    package static func isShared(_ clientID: String, _ otherID: String) -> Bool {
        guard clientID != otherID else { return true }
        guard let project = number(ofClientID: clientID) else { return false }
        return project == number(ofClientID: otherID)
    }

    /// Returns the number of a client id's project, or `nil` if the id has another form than Google's.
    package static func number(ofClientID clientID: String) -> Substring? {
        guard let dash = clientID.firstIndex(of: "-") else { return nil }
        let number = clientID[..<dash]
        return number.isDecimalNumber ? number : nil
    }
}

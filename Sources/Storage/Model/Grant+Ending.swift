package import Base

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
    /// refresh token of another account is never revoked. A grant that has left its account has nothing to end, and
    /// stays without one.
    package mutating func disconnectByRequest(
        revokes: Bool,
        reason: GrantReason = .userRequest,
        at now: Timestamp
    ) -> [GrantEvent] {
        if self.reason == .accountMoved, reason == .userRequest { return [] }
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

    /// Ends the grant because its user has connected the account by another connection. Its tokens are deleted and not
    /// revoked: that would end the other connection too.
    ///
    /// A grant that has ended before gets the reason too, so that it does not count as a connection of the account any
    /// more.
    package mutating func leaveAccount(at now: Timestamp) -> [GrantEvent] {
        let events = end(as: .disconnected, reason: .accountMoved, at: now)
        revocationAskedAt = nil
        dueAt = nil
        wipeTokens()
        owner.googleUserID = nil
        formerTokensUntil = issuedTokens.end
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
        failures = min(failures + 1, 1_000_000)
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
        case .disconnected: GrantReason.endedByInvalidGrant.contains(reason)
        case .reauthRequired, .suspended: !GrantReason.givenByWorker.contains(reason)
        case .active, .retrying: false
        }
    }

    /// Undoes an end or a suspension that an answer in a wave caused: the grant is tried again.
    package mutating func recall(confirmAt dueAt: Timestamp, at now: Timestamp) -> [GrantEvent] {
        guard canBeRecalled else { return [] }
        let former = state
        failures = 1
        failingSince = now
        suspectedSince = now
        enter(.retrying, reason: reason.whileInDoubt, at: now)
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
        return !isForgotten
    }

    /// `true` if nothing is left of the account.
    var isForgotten: Bool { reason == .forgotten || reason == .userDeleted }

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
        guard isForgotten else { return }
        owner = Owner()
        labels = .none
        scope = ""
        formerTokensUntil = issuedTokens.end
    }
}

extension Grant {
    /// `true` if this is the connection of the account: not one whose account is another connection by now.
    package func isConnection(of account: Owner) -> Bool {
        reason != .accountMoved && owner.isSameAccount(as: account)
    }

    /// `true` if the stored refresh token belongs to another Google account than the owner.
    package var hasTokenOfAnotherAccount: Bool { reason == .accountMismatch }

    /// What a person who ends the grant, or tries it again, has seen of it. Differs after each reconnection of a grant
    /// that had ended, also if the app brought no other refresh token.
    package var version: String { "\(id) \(generation) \(since.milliseconds)" }

    /// `true` if the user ended the grant, here or at Google, or did not return until it was forgotten.
    package var wasEndedByUser: Bool {
        let reasons: [GrantReason] = [
            .userRequest, .userDeleted, .tokenRevoked, .tokensRevoked, .forgotten, .accountMoved,
        ]
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

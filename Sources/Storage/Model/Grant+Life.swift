package import Base
package import Crypto

/// The changes of a grant: the only place where its state, its generation and its tokens change.
///
/// Every function returns the events for the grant's history; the caller stores grant and events together.
extension Grant {
    /// Creates a grant that the app, or an import, brought.
    package static func connected(
        id: GrantID,
        userID: String,
        incoming: IncomingTokens,
        dueAt: Timestamp?,
        at now: Timestamp
    ) -> (grant: Grant, events: [GrantEvent]) {
        let grant = Grant(
            id: id,
            userID: userID,
            createdAt: now,
            clientID: incoming.clientID,
            owner: incoming.owner,
            scope: incoming.scope ?? "",
            state: .active,
            reason: .none,
            since: now,
            generation: 1,
            refreshToken: incoming.refreshToken,
            accessToken: incoming.accessToken?.bounded(at: now),
            dueAt: dueAt,
            attempts: 0,
            failingSince: nil,
            lastSuccessAt: nil,
            lastAttemptAt: nil,
            isProven: false,
            revocationAskedAt: nil,
            lease: nil
        )
        return (grant, [GrantEvent(of: grant, kind: .connected, from: nil, at: now)])
    }

    /// Stores the tokens that the app, or a replacing import, brings for an existing grant.
    ///
    /// With another refresh token the old one is dropped and the generation grows, so that a late answer to the old one
    /// is void. If the app brings no refresh token for the same account, the stored one and its generation stay, so a
    /// refresh in flight still counts. Whichever access token expires later is kept.
    mutating func reconnect(
        _ incoming: IncomingTokens,
        replacesRefreshToken: Bool,
        switchesAccount: Bool,
        dueAt: Timestamp?,
        at now: Timestamp
    ) -> [GrantEvent] {
        let (former, formerOwner) = (state, owner)
        let newAccessToken = incoming.accessToken?.bounded(at: now)
        if switchesAccount {
            owner = incoming.owner
            accessToken = newAccessToken
        } else {
            owner.merge(incoming.owner)
            accessToken = AccessToken.later(of: accessToken, newAccessToken, at: now)
        }
        if owner.googleUserID != formerOwner.googleUserID || owner.email != formerOwner.email {
            formerTokensUntil = issuedTokens.end
        }
        if switchesAccount || replacesRefreshToken {
            generation += 1
            refreshToken = incoming.refreshToken
            clientID = incoming.clientID
            isProven = false
            quickRefreshes = 0
            answerLostAt = nil
        } else if let expiresAt = incoming.refreshToken?.expiresAt {
            refreshToken?.expiresAt = expiresAt
        }
        scope = incoming.scope ?? (switchesAccount ? "" : scope)
        // A revocation that is in flight, or only just over, ends the new tokens too. So they are refreshed as soon as
        // its lease is over.
        let mayBeRevoked = reason == .userRequest && refreshToken != nil
        revocationAskedAt = nil
        endFailures()
        enter(.active, reason: .none, at: now)
        self.dueAt = mayBeRevoked ? now : dueAt
        return [GrantEvent(of: self, kind: .connected, from: former, at: now)]
    }

    /// Stores the result of a successful refresh.
    ///
    /// Its access token replaces the stored one regardless of their lifetimes: a stored token that claims to live
    /// longer may be the one that a caller found dead, and would leave the due time in the past. `isQuick` is `true` if
    /// the last success was stored shortly before. `due` returns the next due time from the tokens that are stored
    /// then.
    package mutating func refreshed(
        _ tokens: RefreshedTokens,
        isQuick: Bool = false,
        at now: Timestamp,
        due: (Grant) -> Timestamp
    ) -> [GrantEvent] {
        let former = state
        var events = store(tokens, isQuick: isQuick, at: now)
        endFailures()
        enter(.active, reason: .none, at: now)
        dueAt = due(self)
        if former != state { events.append(GrantEvent(of: self, kind: .state, from: former, at: now)) }
        return events
    }

    /// Stores the tokens of a successful refresh and leaves the state as it is.
    ///
    /// Used alone if the account was disabled while the request was in flight: the answer is older than that event, but
    /// a rotated token must not be lost.
    package mutating func store(_ tokens: RefreshedTokens, isQuick: Bool, at now: Timestamp) -> [GrantEvent] {
        var events = rotate(to: tokens.rotated, at: now)
        let token = tokens.accessToken.bounded(at: now)
        if !(accessToken?.isNewer(than: token, at: now) ?? false) { accessToken = token }
        if let digest = tokens.digest { issuedTokens.insert(digest, until: token.expiresAt, at: now) }
        // Most answers repeat the stored text, so equal texts are not parsed.
        if let scope = tokens.scope, scope != self.scope,
            Set(scope.split(separator: " ")) != Set(self.scope.split(separator: " "))
        {
            self.scope = scope
            events.append(GrantEvent(of: self, kind: .scopeChanged, from: state, at: now))
        }
        if refreshToken?.expiresAt == nil { refreshToken?.expiresAt = tokens.refreshTokenExpiresAt }
        isProven = true
        quickRefreshes = isQuick ? min(quickRefreshes + 1, 1_000_000) : 0
        answerLostAt = nil
        lastSuccessAt = now
        lastAttemptAt = now
        return events
    }

    /// Stores a refresh token that came with an answer, regardless of other faults of that answer.
    package mutating func rotate(to token: RefreshToken?, at now: Timestamp) -> [GrantEvent] {
        guard let token else { return [] }
        generation += 1
        refreshToken = token
        answerLostAt = nil
        return [GrantEvent(of: self, kind: .rotated, from: state, at: now)]
    }

    /// Brings a grant from a restored backup to the version that a later request was sent with.
    ///
    /// The request shows that the user was connected then, so a revocation from before it is not wanted any more.
    package mutating func advance(to generation: Int64, refreshToken: RefreshToken, clientID: String) {
        self.generation = generation
        self.refreshToken = refreshToken
        self.clientID = clientID
        revocationAskedAt = nil
    }

    /// Stores the successor of the refresh token that was to be revoked: the token that was sent is spent.
    package mutating func revoke(rotated token: RefreshToken, at now: Timestamp) -> [GrantEvent] {
        revocationAskedAt = revocationAskedAt ?? now
        dueAt = now
        return rotate(to: token, at: now)
    }

    /// Records that the rotated refresh token of this claim's answer is stored.
    package mutating func recordRotation(by claim: Int64) {
        rotationClaims.insert(claim)
    }

    /// `true` if a rotated refresh token of this claim's answer was stored, even if it has been replaced since.
    ///
    /// `generation` is the version that the claim sent: while it is current, its answer was not stored.
    package func hasStoredRotation(by claim: Int64, ofGeneration generation: Int64) -> Bool {
        self.generation > generation && rotationClaims.contains(claim)
    }

    /// Puts a refusal in doubt until its confirmation.
    package mutating func suspect(since first: Timestamp) {
        suspectedSince = first
    }

    /// Records that an earlier claim ended without a result: its worker died or was suspended, so its answer may be
    /// lost.
    package mutating func recordLostAnswer(at now: Timestamp) {
        answerLostAt = answerLostAt ?? now
    }

    /// Records a failure that may pass, or a refusal that waits for confirmation.
    package mutating func retry(reason: GrantReason, dueAt: Timestamp, at now: Timestamp) -> [GrantEvent] {
        let former = state
        attempts = min(attempts + 1, 1_000_000)
        failingSince = failingSince ?? now
        lastAttemptAt = now
        // Another failure ends a doubt about an invalid_grant. Left alone, its time would count as that of the first
        // refusal of a foreign token.
        if self.reason == .invalidGrantUnconfirmed { suspectedSince = nil }
        enter(.retrying, reason: reason, at: now)
        self.dueAt = dueAt
        return former == state ? [] : [GrantEvent(of: self, kind: .state, from: former, at: now)]
    }

    /// Moves the due time after a failure that says nothing about the grant; its state stays.
    package mutating func postpone(until dueAt: Timestamp, at now: Timestamp) {
        lastAttemptAt = now
        self.dueAt = dueAt
    }

    /// Keeps the lease of a request with an unknown outcome for a while, so that no one repeats the request: no worker,
    /// no caller and no operator.
    package mutating func leaveAlone(
        under lease: Lease,
        for span: Duration,
        at now: Timestamp,
        _ instant: BootInstant
    ) {
        self.lease = lease
        self.lease?.owner = Lease.noOwner
        self.lease?.until = instant + span
        if let dueAt { reschedule(to: max(dueAt, now + span)) }
    }

    /// Suspends the grant, because an administrator or a policy blocks it.
    package mutating func suspend(reason: GrantReason, probeAt: Timestamp, at now: Timestamp) -> [GrantEvent] {
        let former = (state, self.reason)
        lastAttemptAt = now
        endFailures()
        enter(.suspended, reason: reason, at: now)
        dueAt = probeAt
        return former == (state, self.reason) ? [] : [GrantEvent(of: self, kind: .state, from: former.0, at: now)]
    }

    /// Ends the grant until the user signs in again.
    ///
    /// The refresh token of another account stays, sealed, and is not used again: an import may have named a wrong
    /// account and brought the only copy of the token.
    package mutating func requireSignIn(reason: GrantReason, at now: Timestamp) -> [GrantEvent] {
        let events = end(as: .reauthRequired, reason: reason, at: now)
        if hasTokenOfAnotherAccount { accessToken = nil }
        return events
    }

    /// Ends the grant because Google said that it has ended.
    ///
    /// The sealed tokens stay: the answer may turn out to be part of a wave.
    package mutating func disconnect(reason: GrantReason, at now: Timestamp) -> [GrantEvent] {
        end(as: .disconnected, reason: reason, at: now)
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
    /// stays so, with its reason; there is nothing left to revoke.
    package mutating func disconnectByEvent(reason: GrantReason, at now: Timestamp) -> [GrantEvent] {
        let isOver = state == .disconnected
        let events = isOver ? [] : end(as: .disconnected, reason: reason, at: now)
        revocationAskedAt = nil
        dueAt = nil
        wipeTokens()
        return events
    }

    /// Makes the grant due now, after an event whose meaning for the grant only Google knows.
    ///
    /// A grant that waits for confirmation is left alone: an early retry would defeat the confirmation delay.
    package mutating func probeNow(at now: Timestamp) {
        guard !state.endsRefreshes, refreshToken != nil, !GrantReason.awaitingConfirmation.contains(reason) else {
            return
        }
        dueAt = dueAt.map { min($0, now) } ?? now
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

    /// Changes the client id, on an operator's request.
    ///
    /// A grant that was refused as one of another client id is tried again now, even if that had ended it. The
    /// generation of a grant that is still refreshed grows, so that a late answer to a request with the former client
    /// id is void.
    mutating func changeClient(to clientID: String, at now: Timestamp) -> [GrantEvent] {
        self.clientID = clientID
        let isTriedAgain = mayBelongToAnotherClient && refreshToken != nil
        if isTriedAgain || !state.endsRefreshes { generation += 1 }
        guard isTriedAgain else { return [] }
        let former = state
        endFailures()
        enter(.retrying, reason: .none, at: now)
        dueAt = now
        return former == state ? [] : [GrantEvent(of: self, kind: .state, from: former, at: now)]
    }

    /// `true` if the stored refresh token is this one, even if another key has sealed it since.
    package func holds(_ token: RefreshToken?) -> Bool {
        guard let token, let refreshToken else { return false }
        if refreshToken.sealed == token.sealed { return true }
        guard let digest = refreshToken.marks?.digest else { return false }
        return digest == token.marks?.digest
    }

    /// `true` if an answer about this version of the refresh token ended the grant, which has not changed since.
    package func wasEndedByAnswer(to generation: Int64) -> Bool {
        canBeRecalled && self.generation == generation + 1
    }

    /// `true` if an answer ended the grant and nothing else has happened to it since, so that a wave can undo it.
    package var canBeRecalled: Bool {
        state == .disconnected && GrantReason.endedByAnswer.contains(reason) && refreshToken != nil
    }

    /// Undoes a disconnection that an answer in a wave caused: the grant is tried again.
    package mutating func recall(confirmAt dueAt: Timestamp, at now: Timestamp) -> [GrantEvent] {
        guard canBeRecalled else { return [] }
        attempts = 1
        failingSince = now
        suspectedSince = now
        enter(.retrying, reason: .invalidGrantUnconfirmed, at: now)
        self.dueAt = dueAt
        return [GrantEvent(of: self, kind: .state, from: .disconnected, at: now)]
    }

    /// Moves the due time alone, after a step of the wall clock or on an operator's request.
    package mutating func reschedule(to dueAt: Timestamp) {
        guard self.dueAt != nil else { return }
        self.dueAt = dueAt
    }

    /// Replaces the sealed tokens with the same tokens sealed by another key; the generation stays.
    package mutating func reseal(refreshToken newRefresh: RefreshToken?, accessToken newAccess: SealedSecret?) {
        if let newRefresh {
            refreshToken?.sealed = newRefresh.sealed
            refreshToken?.marks = newRefresh.marks
        }
        if let newAccess { accessToken?.sealed = newAccess }
    }

    /// Sets, renews or removes the right to call Google for this grant.
    package mutating func setLease(_ lease: Lease?) {
        self.lease = lease
    }

    /// Sets the state, the reason and their time that an imported grant had at its origin.
    package mutating func restore(state: GrantState, reason: GrantReason, since: Timestamp) {
        enter(state, reason: reason, at: since)
        self.since = since
        if state.endsRefreshes { dueAt = nil }
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

    private mutating func enter(_ state: GrantState, reason: GrantReason, at now: Timestamp) {
        if state != self.state { since = now }
        self.state = state
        self.reason = reason
    }

    private mutating func endFailures() {
        attempts = 0
        failingSince = nil
        suspectedSince = nil
    }

    /// The account data of a deleted user is deleted with the tokens.
    private mutating func wipeTokens() {
        refreshToken = nil
        accessToken = nil
        guard reason == .userDeleted else { return }
        owner = Owner()
        formerTokensUntil = issuedTokens.end
    }
}

extension Grant {
    /// `true` if the stored refresh token belongs to another Google account than the owner.
    package var hasTokenOfAnotherAccount: Bool { reason == .accountMismatch }

    /// `true` if the user ended the grant, here or at Google.
    package var wasEndedByUser: Bool {
        state == .disconnected && [.userRequest, .userDeleted, .tokenRevoked, .tokensRevoked].contains(reason)
    }

    /// `true` if the user ended the grant here while this version of the refresh token was in use, and nothing else has
    /// changed its tokens since.
    package func wasEndedByRequest(during generation: Int64) -> Bool {
        state == .disconnected && [.userRequest, .userDeleted].contains(reason) && self.generation == generation + 1
    }

    /// `true` if storing `next` in place of this grant would bring back deleted data.
    func forbids(_ next: Grant) -> Bool {
        reason == .userDeleted && next.reason != .userDeleted
    }

    /// `true` if a stored grant has not changed since a claim returned it; its lease may have been renewed.
    func isSame(asClaimed claimed: Grant) -> Bool {
        guard lease?.claim == claimed.lease?.claim else { return false }
        var stored = self
        stored.setLease(claimed.lease)
        return stored == claimed
    }
}

extension Grant.AccessToken {
    /// The longest lifetime of an access token that is trusted.
    ///
    /// Google's live for an hour, and at most twelve
    /// (https://cloud.google.com/iam/docs/create-short-lived-credentials-direct). A later expiry comes from a wrong
    /// clock or a typing error.
    static let longestLifetime: Duration = .seconds(86_400)

    /// Returns the token with its expiry limited to a plausible one.
    func bounded(at now: Timestamp) -> Self {
        var token = self
        token.expiresAt = min(expiresAt, now + Self.longestLifetime)
        return token
    }

    /// `true` if this stored token is live and was obtained after `late`: a worker was suspended with its
    /// answer, and another worker has refreshed the grant since.
    func isNewer(than late: Self, at now: Timestamp) -> Bool {
        obtainedAt > late.obtainedAt && obtainedAt <= now && expiresAt > now
    }

    /// Returns the token that expires later; a token that was stored by a clock ahead of this one does not count.
    static func later(of stored: Self?, _ new: Self?, at now: Timestamp) -> Self? {
        guard let stored, stored.obtainedAt <= now else { return new ?? stored }
        guard let new else { return stored }
        return stored.expiresAt > new.expiresAt ? stored : new
    }
}

extension Grant.Owner {
    /// Replaces the fields that the other owner has.
    mutating func merge(_ other: Self) {
        googleUserID = other.googleUserID ?? googleUserID
        email = other.email ?? email
        name = other.name ?? name
        emailIsVerified = other.emailIsVerified ?? emailIsVerified
    }
}

package import Base
package import Crypto

/// The changes of a grant while it lives.
///
/// Its state, its generation and its tokens change only here and in `Grant+Ending.swift`.
///
/// A function that the history shows returns its events. The caller stores grant and events together.
extension Grant {
    /// Creates a grant that the app, or an import, brought.
    package static func connected(
        id: GrantID,
        userID: String,
        connection: ConnectionID = .default,
        incoming: IncomingTokens,
        dueAt: Timestamp?,
        at now: Timestamp
    ) -> (grant: Grant, events: [GrantEvent]) {
        var grant = Grant(
            id: id,
            userID: userID,
            connection: connection,
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
            dueAt: dueAt
        )
        grant.recordIssue(of: incoming, at: now)
        grant.labels = incoming.labels ?? .none
        return (grant, [GrantEvent(of: grant, kind: .connected, from: nil, at: now)])
    }

    /// Stores the tokens that the app, or a replacing import, brings for an existing grant.
    ///
    /// With another refresh token the old one is dropped and the generation grows, so that a late answer to the old one
    /// is void. If the app brings no refresh token for the same account, the stored one and its generation stay, so a
    /// refresh in flight still counts. Whichever access token expires later is kept. The due time does not move later
    /// then: the server's `refresh_token_timeout` can be the reason for it, and only a refresh counts for that.
    mutating func reconnect(
        _ incoming: IncomingTokens,
        replacesRefreshToken: Bool,
        discardsStored: Bool,
        dueAt: Timestamp?,
        at now: Timestamp
    ) -> [GrantEvent] {
        let (former, formerOwner, formerDueAt) = (state, owner, self.dueAt)
        let keepsRefreshToken = !discardsStored && !replacesRefreshToken && refreshToken != nil
        let newAccessToken = incoming.accessToken?.bounded(at: now)
        if discardsStored {
            owner = incoming.owner
            accessToken = newAccessToken
        } else {
            owner.merge(incoming.owner)
            accessToken = AccessToken.later(of: accessToken, and: newAccessToken, at: now)
        }
        if owner.googleUserID != formerOwner.googleUserID || owner.email != formerOwner.email {
            formerTokensUntil = issuedTokens.end
        }
        recordIssue(of: incoming, at: now)
        if discardsStored || replacesRefreshToken {
            generation += 1
            refreshToken = incoming.refreshToken?.bound(as: refreshToken)
            clientID = incoming.clientID
            isProven = false
            quickRefreshes = 0
            answerLostAt = nil
            if hasRotatedToken { addRotationClaim(Self.noClaim) }
        } else if let expiresAt = incoming.refreshToken?.expiresAt {
            // Google's SDK counts the lifetime anew after each start of the app, so a later end is wrong.
            let known = refreshToken?.expiresAt ?? expiresAt
            refreshToken?.expiresAt = min(known, expiresAt)
        }
        scope = incoming.scope ?? (discardsStored ? "" : scope)
        labels = incoming.labels ?? labels
        // A revocation that is in flight, or only just over, ends the new tokens too. So they are refreshed as soon as
        // its lease is over.
        let mayBeRevoked = reason == .userRequest && refreshToken != nil
        revocationAskedAt = nil
        endFailures()
        enter(.active, reason: .none, at: now)
        self.dueAt = mayBeRevoked ? now : dueAt
        if keepsRefreshToken, let formerDueAt, let due = self.dueAt { self.dueAt = min(formerDueAt, due) }
        return [GrantEvent(of: self, kind: .connected, from: former, at: now)]
    }

    private mutating func recordIssue(of incoming: IncomingTokens, at now: Timestamp) {
        guard let digest = incoming.issuedDigest, let token = incoming.accessToken?.bounded(at: now) else { return }
        issuedTokens.insert(digest, until: token.expiresAt, at: now)
    }

    /// Stores the result of a successful refresh.
    ///
    /// Its access token replaces the stored one regardless of their lifetimes: a stored token that claims to live
    /// longer might be the one that a caller found dead, and would leave the due time in the past. `isQuick` is `true`
    /// if the last success was stored shortly before. `due` returns the next due time from the tokens that are stored
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

    /// Stores the tokens of a successful refresh and leaves the state as it is. Used alone if the account was disabled
    /// while the request was in flight: the answer is older than that event, but a rotated token must not be lost.
    package mutating func store(_ tokens: RefreshedTokens, isQuick: Bool, at now: Timestamp) -> [GrantEvent] {
        var events = rotate(to: tokens.rotated, at: now)
        let token = tokens.accessToken.bounded(at: now)
        if !holdsAccessToken(newerThan: token, at: now) { accessToken = token }
        if let digest = tokens.digest { issuedTokens.insert(digest, until: token.expiresAt, at: now) }
        // Most answers repeat the stored text, so equal texts are not parsed.
        if let scope = tokens.scope, scope != self.scope,
            Set(scope.split(separator: " ")) != Set(self.scope.split(separator: " "))
        {
            self.scope = scope
            events.append(GrantEvent(of: self, kind: .scopeChanged, from: state, at: now))
        }
        if let end = tokens.refreshTokenExpiresAt { setConsentEnd(end) }
        isProven = true
        quickRefreshes = isQuick ? min(quickRefreshes + 1, 1_000_000) : 0
        answerLostAt = nil
        lastSuccessAt = now
        lastAttemptAt = now
        return events
    }

    /// The smallest difference between two ends of a consent that is written: Google's number is of whole seconds, and
    /// each response takes a while.
    private static let consentEndTolerance: Duration = .seconds(60)

    /// Takes over the end of the consent that Google names. It is right whatever the app said before.
    ///
    /// A later end is that of an extended consent, which is announced again.
    private mutating func setConsentEnd(_ end: Timestamp) {
        guard let token = refreshToken else { return }
        guard let known = token.expiresAt else {
            refreshToken?.expiresAt = end
            return
        }
        guard end - known > Self.consentEndTolerance || known - end > Self.consentEndTolerance else { return }
        refreshToken?.expiresAt = end
        if end > known { refreshToken?.isExpiryNoticed = false }
    }

    private func holdsAccessToken(newerThan token: AccessToken, at now: Timestamp) -> Bool {
        guard let accessToken else { return false }
        return accessToken.isNewer(than: token, at: now)
    }

    /// Stores a refresh token that came with an answer, regardless of other faults of that answer.
    package mutating func rotate(to token: RefreshToken?, at now: Timestamp) -> [GrantEvent] {
        guard var token else { return [] }
        generation += 1
        // To the user it is the same consent. A server that rotates often would else cause a notice each time. Its end is
        // known until the server names another.
        let end = token.expiresAt
        token.consentedAt = refreshToken?.consentedAt
        token.isExpiryNoticed = refreshToken?.isExpiryNoticed ?? false
        token.expiresAt = refreshToken?.expiresAt ?? end
        refreshToken = token
        if let end { setConsentEnd(end) }
        answerLostAt = nil
        return [GrantEvent(of: self, kind: .rotated, from: state, at: now)]
    }

    /// Brings a grant from a restored backup to the version that a later request was sent with. The request shows that
    /// the user was connected then, so a revocation from before it is not wanted any more.
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

    /// Enough for a third of a day of hourly refreshes.
    static let maximumRotationClaims = 8

    /// Stands among ``rotationClaims`` for a refresh token that the app or an import brought after rotated ones.
    private static let noClaim: Int64 = -1

    /// `true` if the stored refresh token came with an answer, and not from the app or an import.
    var hasRotatedToken: Bool {
        guard let last = rotationClaims.last else { return false }
        return last != Self.noClaim
    }

    /// Records that the rotated refresh token of this claim's answer is stored.
    package mutating func recordRotation(by claim: Int64) {
        guard !rotationClaims.contains(claim) else { return }
        addRotationClaim(claim)
    }

    private mutating func addRotationClaim(_ claim: Int64) {
        rotationClaims = rotationClaims.suffix(Self.maximumRotationClaims - 1) + [claim]
    }

    /// `true` if a rotated refresh token of this claim's answer was stored, even if it has been replaced since.
    /// `generation` is the version that the claim sent: while it is current, its answer was not stored.
    package func hasStoredRotation(by claim: Int64, ofGeneration generation: Int64) -> Bool {
        self.generation > generation && rotationClaims.contains(claim)
    }

    /// Records since when the grant is in doubt, or might have a foreign token (``suspectedSince``).
    package mutating func suspect(since first: Timestamp) { suspectedSince = first }

    /// Records that an earlier claim ended without a result: its worker died or was suspended, so its answer might be
    /// lost.
    package mutating func recordLostAnswer(at now: Timestamp) { answerLostAt = answerLostAt ?? now }

    /// Records a failure that might pass, or a refusal that waits for confirmation.
    package mutating func retry(reason: GrantReason, dueAt: Timestamp, at now: Timestamp) -> [GrantEvent] {
        let former = state
        failures = min(failures + 1, 1_000_000)
        failingSince = failingSince ?? now
        lastAttemptAt = now
        // Another failure ends a doubt about a refusal. Left alone, its time would count as that of the first refusal
        // of a foreign token.
        if GrantReason.inDoubt.contains(self.reason) { suspectedSince = nil }
        enter(.retrying, reason: reason, at: now)
        self.dueAt = dueAt
        return former == state ? [] : [GrantEvent(of: self, kind: .state, from: former, at: now)]
    }

    /// Moves the due time after a failure that says nothing about the grant, and leaves its state.
    ///
    /// A confirmation still comes when it is due. Example: a caller asks at one minute, and the client is refused. A
    /// refusal five seconds later must not confirm the doubt.
    package mutating func postpone(until dueAt: Timestamp, at now: Timestamp) {
        self.dueAt = max(dueAt, pendingConfirmation(at: now) ?? dueAt)
        lastAttemptAt = now
    }

    /// Keeps the lease of a request with an unknown outcome for a while, so that no one repeats the request: no worker,
    /// no caller and no operator.
    package mutating func leaveAlone(
        under lease: Lease,
        for span: Duration,
        at now: Timestamp,
        instant: BootInstant
    ) {
        self.lease = lease
        self.lease?.owner = Lease.noOwner
        self.lease?.until = instant + span
        if let dueAt { reschedule(to: max(dueAt, now + span)) }
    }

    /// Suspends the grant, because an administrator or a policy blocks it.
    package mutating func suspend(reason: GrantReason, probeAt: Timestamp, at now: Timestamp) -> [GrantEvent] {
        let (formerState, formerReason) = (state, self.reason)
        lastAttemptAt = now
        endFailures()
        enter(.suspended, reason: reason, at: now)
        dueAt = probeAt
        if formerState == .suspended, formerReason == reason { return [] }
        return [GrantEvent(of: self, kind: .state, from: formerState, at: now)]
    }

    /// Makes the grant due now, after an event whose meaning for the grant only Google knows. A grant that waits for
    /// confirmation is left alone: an early retry would defeat the confirmation delay.
    package mutating func makeDueNow(at now: Timestamp) {
        guard !state.endsRefreshes, refreshToken != nil, !awaitsConfirmation else { return }
        if let dueAt, dueAt < now { return }
        dueAt = now
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

    /// Records that the refresh token ends by `end`, and returns the notice for the backend, or `nil` if there is
    /// nothing to say. The end of each consent is announced once.
    package mutating func announceExpiry(by end: Timestamp, at now: Timestamp) -> Notice.Content? {
        guard state.isConnected, let token = refreshToken, !token.isExpiryNoticed else { return nil }
        guard let expiresAt = token.expiresAt, expiresAt > now, expiresAt <= end else { return nil }
        refreshToken?.isExpiryNoticed = true
        return .expiring(of: Notice.Subject(self), at: expiresAt)
    }

    /// `true` if a notice that the refresh token ends at `end` is still true.
    package func isAnnounced(toExpireAt end: Timestamp) -> Bool {
        guard !state.endsRefreshes, let token = refreshToken, let expiresAt = token.expiresAt else { return false }
        return token.isExpiryNoticed && expiresAt <= end
    }

    /// Moves the due time alone, after a step of the wall clock or on an operator's request.
    package mutating func reschedule(to dueAt: Timestamp) {
        guard self.dueAt != nil else { return }
        self.dueAt = dueAt
    }

    /// Replaces the sealed tokens with the same tokens sealed by another key, and leaves the generation.
    package mutating func reseal(refreshToken newRefresh: RefreshToken?, accessToken newAccess: SealedSecret?) {
        if let newRefresh {
            refreshToken?.sealed = newRefresh.sealed
            refreshToken?.marks = newRefresh.marks
        }
        if let newAccess { accessToken?.sealed = newAccess }
    }

    /// Sets, renews or removes the right to call Google for this grant.
    package mutating func setLease(_ lease: Lease?) { self.lease = lease }

    /// Sets the state, the reason and their time that an imported grant had at its origin.
    ///
    /// One that has left its account keeps no id of it: another connection of the user can get the account.
    package mutating func restore(state: GrantState, reason: GrantReason, since: Timestamp) {
        enter(state, reason: reason, at: since)
        self.since = since
        if state.endsRefreshes { dueAt = nil }
        guard reason == .accountMoved, owner.googleUserID != nil else { return }
        owner.googleUserID = nil
        formerTokensUntil = issuedTokens.end
    }

    mutating func enter(_ state: GrantState, reason: GrantReason, at now: Timestamp) {
        if state != self.state { since = now }
        self.state = state
        self.reason = reason
    }

    mutating func endFailures() {
        failures = 0
        failingSince = nil
        suspectedSince = nil
    }
}

extension Grant {
    /// `true` if a stored grant has not changed since a claim returned it. Its lease might have been renewed.
    func isSame(asClaimed claimed: Grant) -> Bool {
        guard lease?.claim == claimed.lease?.claim else { return false }
        var stored = self
        stored.setLease(claimed.lease)
        return stored == claimed
    }
}

package import Clocks
package import Secrets

/// The life of a grant: the only place where its state, its generation and its tokens change.
///
/// Every function returns the events that belong in the grant's history; the caller stores grant and events together.
extension Grant {
    /// A grant that the app, or an import, brought.
    package static func connected(
        id: GrantID,
        userID: String,
        handover: Handover,
        dueAt: Timestamp?,
        at now: Timestamp
    ) -> (grant: Grant, events: [GrantEvent]) {
        let grant = Grant(
            id: id,
            userID: userID,
            createdAt: now,
            clientID: handover.clientID,
            owner: handover.owner,
            scope: handover.scope ?? "",
            state: .active,
            reason: .none,
            since: now,
            generation: 1,
            refreshToken: handover.refreshToken,
            accessToken: handover.accessToken?.bounded(at: now),
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

    /// The app, or an import that replaces, brings tokens for a grant that is stored already.
    ///
    /// With another refresh token the old one is forgotten and the generation grows, so that a late answer to the old one
    /// is void. Without one, and for the same account, the stored one stays, and so does the fence: an answer on its way
    /// to the stored token is still good, and the later of both access tokens wins.
    package mutating func reconnect(
        _ handover: Handover,
        bringsOtherRefreshToken: Bool,
        switchesAccount: Bool,
        dueAt: Timestamp?,
        at now: Timestamp
    ) -> [GrantEvent] {
        let (former, formerOwner) = (state, owner)
        let broughtToken = handover.accessToken?.bounded(at: now)
        if switchesAccount {
            owner = handover.owner
            accessToken = broughtToken
        } else {
            owner.merge(handover.owner)
            accessToken = AccessToken.later(of: accessToken, broughtToken, at: now)
        }
        if owner.googleUserID != formerOwner.googleUserID || owner.email != formerOwner.email {
            formerTokensUntil = issuedTokens.end
        }
        if switchesAccount || bringsOtherRefreshToken {
            generation += 1
            refreshToken = handover.refreshToken
            clientID = handover.clientID
            isProven = false
            quickRefreshes = 0
            answerLostAt = nil
        } else if let known = handover.refreshToken?.expiresAt {
            refreshToken?.expiresAt = known
        }
        scope = handover.scope ?? scope
        revocationAskedAt = nil
        endFailures()
        enter(.active, reason: .none, at: now)
        self.dueAt = dueAt
        return [GrantEvent(of: self, kind: .connected, from: former, at: now)]
    }

    /// A refresh succeeded.
    ///
    /// Its access token replaces the stored one whatever their lifetimes: a stored token that claims to live longer may be the
    /// one that a caller found dead, and would leave the due time in the past. `isQuick` says that the success before this
    /// one was only just stored. `due` returns the next due time by the tokens that are stored then.
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
    /// Used alone when the account was disabled while the request was in flight: the answer is older than that event, but a
    /// rotated token must not be lost.
    package mutating func store(_ tokens: RefreshedTokens, isQuick: Bool, at now: Timestamp) -> [GrantEvent] {
        var events = rotate(to: tokens.rotated, at: now)
        let token = tokens.accessToken.bounded(at: now)
        if !(accessToken?.isNewer(than: token, at: now) ?? false) { accessToken = token }
        if let digest = tokens.digest { issuedTokens.insert(digest, until: token.expiresAt, at: now) }
        // Most answers repeat the text that is stored, which is seen without taking it apart.
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

    /// Stores a refresh token that came with an answer, whatever else is wrong with that answer.
    package mutating func rotate(to token: RefreshToken?, at now: Timestamp) -> [GrantEvent] {
        guard let token else { return [] }
        generation += 1
        refreshToken = token
        answerLostAt = nil
        return [GrantEvent(of: self, kind: .rotated, from: state, at: now)]
    }

    /// The rotated refresh token of this claim's answer is stored.
    package mutating func noteRotation(by claim: Int64) {
        rotationClaims.insert(claim)
    }

    /// `true` if a rotated refresh token of this claim's answer was stored, whatever has replaced it since.
    ///
    /// `generation` is the version that the claim asked with: while it is current, its answer was not stored.
    package func hasStoredRotation(by claim: Int64, ofGeneration generation: Int64) -> Bool {
        self.generation > generation && rotationClaims.contains(claim)
    }

    /// A refusal is doubted: it awaits a second opinion.
    package mutating func suspect(since first: Timestamp) {
        suspectedSince = first
    }

    /// An earlier claim was never settled: a worker died, or stands still, and its answer may be lost.
    package mutating func noteLostAnswer(at now: Timestamp) {
        answerLostAt = answerLostAt ?? now
    }

    /// A try failed in a way that passes, or whose answer awaits a second opinion.
    package mutating func retry(reason: GrantReason, dueAt: Timestamp, at now: Timestamp) -> [GrantEvent] {
        let former = state
        attempts = min(attempts + 1, 1_000_000)
        failingSince = failingSince ?? now
        lastAttemptAt = now
        enter(.retrying, reason: reason, at: now)
        self.dueAt = dueAt
        return former == state ? [] : [GrantEvent(of: self, kind: .state, from: former, at: now)]
    }

    /// A try failed for a reason that is not the grant's: it stays as it is and is tried again.
    package mutating func postpone(until dueAt: Timestamp, at now: Timestamp) {
        lastAttemptAt = now
        self.dueAt = dueAt
    }

    /// An administrator or a policy blocks the grant.
    package mutating func suspend(reason: GrantReason, probeAt: Timestamp, at now: Timestamp) -> [GrantEvent] {
        let former = (state, self.reason)
        lastAttemptAt = now
        endFailures()
        enter(.suspended, reason: reason, at: now)
        dueAt = probeAt
        return former == (state, self.reason) ? [] : [GrantEvent(of: self, kind: .state, from: former.0, at: now)]
    }

    /// Only the user can repair the grant.
    ///
    /// The refresh token of another account stays, sealed, and is not used again: an import may have stated a wrong account,
    /// and have brought the only copy.
    package mutating func requireSignIn(reason: GrantReason, at now: Timestamp) -> [GrantEvent] {
        let events = end(as: .reauthRequired, reason: reason, at: now)
        if hasForeignToken { accessToken = nil }
        return events
    }

    /// Google said that the grant is dead.
    ///
    /// The tokens stay, sealed: the answer may turn out to be one of a wave.
    package mutating func disconnect(reason: GrantReason, at now: Timestamp) -> [GrantEvent] {
        end(as: .disconnected, reason: reason, at: now)
    }

    /// The user asked to end the grant, or was deleted.
    ///
    /// With `revokes` its tokens are kept until Google has been told, else wiped at once. The refresh token of another account
    /// is never revoked.
    package mutating func disconnectByRequest(
        revokes: Bool,
        reason: GrantReason = .userRequest,
        at now: Timestamp
    ) -> [GrantEvent] {
        let revokes = revokes && !hasForeignToken
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

    /// A security event said that the tokens are dead: they go at once.
    ///
    /// The generation grows, so that an answer on its way brings none of them back. A grant that is disconnected already
    /// stays so, with its reason; there is nothing left to revoke.
    package mutating func disconnectByEvent(reason: GrantReason, at now: Timestamp) -> [GrantEvent] {
        let isOver = state == .disconnected
        let events = isOver ? [] : end(as: .disconnected, reason: reason, at: now)
        revocationAskedAt = nil
        dueAt = nil
        wipeTokens()
        return events
    }

    /// Something happened of which only Google can tell what it means for the grant: it is asked now, where it may be.
    ///
    /// A grant that awaits a second opinion is left alone: asked before its time, that opinion would be no second one.
    package mutating func probeNow(at now: Timestamp) {
        guard !state.endsCalls, refreshToken != nil, !GrantReason.awaitingSecondOpinion.contains(reason) else { return }
        dueAt = dueAt.map { min($0, now) } ?? now
    }

    /// Google has been told, or could not be told for a day: the tokens go.
    package mutating func finishRevocation() {
        revocationAskedAt = nil
        dueAt = nil
        endFailures()
        wipeTokens()
    }

    /// Google could not be told yet.
    package mutating func postponeRevocation(until dueAt: Timestamp, at now: Timestamp) {
        attempts = min(attempts + 1, 1_000_000)
        lastAttemptAt = now
        self.dueAt = dueAt
    }

    /// `true` if the stored refresh token is this one, be it sealed by another key since.
    package func holds(_ token: RefreshToken?) -> Bool {
        guard let token, let refreshToken else { return false }
        if refreshToken.sealed == token.sealed { return true }
        guard let digest = refreshToken.marks?.digest else { return false }
        return digest == token.marks?.digest
    }

    /// Whether the grant was ended by what Google said of the version of the refresh token that is asked about, and nothing
    /// happened to it since.
    package func wasEndedByAnswer(to generation: Int64) -> Bool {
        state == .disconnected && GrantReason.endedByAnswer.contains(reason) && self.generation == generation + 1
            && refreshToken != nil
    }

    /// Takes back a disconnection that one answer of a wave brought about: the grant is asked again.
    package mutating func recall(confirmAt dueAt: Timestamp, at now: Timestamp) -> [GrantEvent] {
        guard state == .disconnected, GrantReason.endedByAnswer.contains(reason), refreshToken != nil else {
            return []
        }
        attempts = 1
        failingSince = now
        suspectedSince = now
        enter(.retrying, reason: .invalidGrantUnconfirmed, at: now)
        self.dueAt = dueAt
        return [GrantEvent(of: self, kind: .state, from: .disconnected, at: now)]
    }

    /// Moves the due time alone, as when the wall clock was found wrong or an operator asks.
    package mutating func reschedule(to dueAt: Timestamp) {
        guard self.dueAt != nil else { return }
        self.dueAt = dueAt
    }

    /// Puts sealed tokens in place of the same tokens sealed by another key: the fence stays.
    package mutating func reseal(refreshToken newRefresh: RefreshToken?, accessToken newAccess: SealedSecret?) {
        if let newRefresh {
            refreshToken?.sealed = newRefresh.sealed
            refreshToken?.marks = newRefresh.marks
        }
        if let newAccess { accessToken?.sealed = newAccess }
    }

    /// Marks a refresh token that was stored before there were marks, if it is still the stored one.
    package mutating func mark(_ marked: RefreshToken) {
        guard refreshToken?.sealed == marked.sealed else { return }
        refreshToken?.marks = marked.marks
    }

    /// Takes, renews or gives up the right to call Google for this grant.
    package mutating func setLease(_ lease: Lease?) {
        self.lease = lease
    }

    /// Puts an imported grant into the state that it had where it came from, since when it had it there.
    package mutating func adopt(state: GrantState, reason: GrantReason, since: Timestamp) {
        enter(state, reason: reason, at: since)
        self.since = since
        if state.endsCalls { dueAt = nil }
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

    /// With the tokens of a deleted user goes what is known of the account.
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
    package var hasForeignToken: Bool { reason == .accountMismatch }

    /// `true` if the user ended the grant, here or at Google.
    package var wasEndedByUser: Bool {
        state == .disconnected && [.userRequest, .userDeleted, .tokenRevoked, .tokensRevoked].contains(reason)
    }

    /// Whether storing `next` in this grant's place would bring back what was deleted.
    package func forbids(_ next: Grant) -> Bool {
        reason == .userDeleted && next.reason != .userDeleted
    }

    /// Whether a try before its time does no harm.
    var mayBeHastened: Bool {
        state == .retrying && !GrantReason.awaitingSecondOpinion.contains(reason)
    }
}

extension Grant.AccessToken {
    /// The longest lifetime of an access token that is believed.
    ///
    /// Google's live for an hour, and twelve at most
    /// (https://cloud.google.com/iam/docs/create-short-lived-credentials-direct). A later expiry is a wrong clock or a typing error.
    package static let longestLifetime: Duration = .seconds(86_400)

    /// The token with an expiry that can be believed.
    func bounded(at now: Timestamp) -> Self {
        var token = self
        token.expiresAt = min(expiresAt, now + Self.longestLifetime)
        return token
    }

    /// `true` if this stored token lives and was obtained after a token that comes late: a worker stood still with its answer,
    /// and another one has refreshed the grant meanwhile.
    func isNewer(than late: Self, at now: Timestamp) -> Bool {
        obtainedAt > late.obtainedAt && obtainedAt <= now && expiresAt > now
    }

    /// The one that lives longer; but a stored one from the future was stored by a clock that was ahead, so that its
    /// expiry means nothing.
    static func later(of stored: Self?, _ new: Self?, at now: Timestamp) -> Self? {
        guard let stored, stored.obtainedAt <= now else { return new ?? stored }
        guard let new else { return stored }
        return stored.expiresAt > new.expiresAt ? stored : new
    }
}

extension Grant.Owner {
    /// Takes over what the other knows.
    mutating func merge(_ other: Self) {
        googleUserID = other.googleUserID ?? googleUserID
        email = other.email ?? email
        name = other.name ?? name
        emailIsVerified = other.emailIsVerified ?? emailIsVerified
    }
}

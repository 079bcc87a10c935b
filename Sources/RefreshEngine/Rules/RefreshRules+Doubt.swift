import Clocks
import Observability
import Scheduler
import Store

/// Refusals that are not believed at once, because they may say more about Google or the client than about the grant.
extension RefreshRules {
    // MARK: invalid_grant

    /// Ends the grant, unless the client gets more `invalid_grant` than usual and this one has not been confirmed.
    func doubtOrEnd(_ grant: inout Grant, health: inout ClientHealth, at moment: Moment, ruling: inout Ruling) {
        let now = moment.now
        let awaitsSecondOpinion =
            grant.reason == .invalidGrantUnconfirmed || grant.state == .suspended && grant.suspectedSince != nil
        let isEarly = awaitsSecondOpinion && !(grant.dueAt.map { $0 <= now } ?? true)
        // Only first opinions count: a grant that is asked again must not keep up the wave that it waits for.
        if !awaitsSecondOpinion { note(grant, saysInvalid: true, in: &health, at: moment) }
        let first = awaitsSecondOpinion ? min(grant.suspectedSince ?? now, now) : now
        // The refusal of a grant that never worked is not counted, so that strangers cannot make a wave. It is weighed for itself.
        let isUncounted = !grant.isProven && now - first < InvalidGrantRate.span
        let level = health.level(at: now, uncounted: isUncounted ? 1 : 0)
        if level == .wave { ruling.recalls = health.takeBelieved(at: now) }

        let isBelieved =
            awaitsSecondOpinion
            ? !isEarly && (level == .usual || now - first >= Self.longestDoubt)
            : level == .usual
        if isBelieved {
            if grant.isProven { health.noteEnd(of: grant.id, atOnce: !awaitsSecondOpinion, at: now) }
            let reason: GrantReason = grant.answerLostAt == nil ? .invalidGrant : .answerLost
            ruling.events = grant.disconnect(reason: reason, at: now)
            ruling.outcome = .disconnected
            return
        }
        ruling.outcome = .held
        let next = Self.opinions.first { now - first < $0 }.map { first + $0 } ?? now + Self.secondOpinionAfter
        if isEarly {
            // A caller asked before the second opinion was due: this is still the first one.
            grant.postpone(until: grant.dueAt ?? next, at: now)
        } else if grant.state == .suspended {
            // It shows as disconnected already, and must not show as connected because of this.
            grant.postpone(until: next, at: now)
        } else {
            ruling.events = grant.retry(reason: .invalidGrantUnconfirmed, dueAt: next, at: now)
        }
        grant.suspect(since: first)
    }

    // MARK: Tokens of another client

    /// `unauthorized_client` and `invalid_request`: the client's fault, or a token that was issued to another client.
    ///
    /// While others of the same client are refreshed, it is this grant that does not belong. The suspicion is stored with the grant,
    /// so any number of them can be told from a fault of the client.
    func weighForeignToken(
        _ code: String,
        grant: inout Grant,
        health: inout ClientHealth,
        at moment: Moment,
        ruling: inout Ruling
    ) {
        let since = grant.reason == .invalidGrantUnconfirmed ? nil : grant.suspectedSince
        let othersSucceeded = since.map { since in health.provenSuccessAt.map { $0 > since } ?? false } ?? false
        guard othersSucceeded, let since else {
            // The suspicion begins anew until others succeed after it: before that the client itself may be at fault.
            return weighFirstRefusal(code, grant: &grant, health: &health, at: moment, ruling: &ruling)
        }
        health.breaker.probeWasInconclusive(at: moment.instant)
        // Others must have succeeded since the last try as well: the client may have failed meanwhile.
        let isCurrent = grant.lastAttemptAt.map { last in health.provenSuccessAt.map { $0 > last } ?? false } ?? true
        if !grant.isProven || isCurrent && moment.now - since >= Self.patienceWithProvenGrant {
            ruling.events = grant.requireSignIn(reason: .clientMismatch, at: moment.now)
            ruling.outcome = .reauthRequired
            return
        }
        retryForeign(&grant, health: health, at: moment, ruling: &ruling)
        ruling.alarm = Alarm(
            kind: .grantRefused,
            clientID: grant.clientID,
            text: "a grant that used to work answers \(code) while others work; its user may have to sign in again"
        )
    }

    private func weighFirstRefusal(
        _ code: String,
        grant: inout Grant,
        health: inout ClientHealth,
        at moment: Moment,
        ruling: inout Ruling
    ) {
        guard grant.isProven else {
            grant.suspect(since: moment.now)
            retry(&grant, reason: .clientMismatchUnconfirmed, health: health, at: moment, ruling: &ruling)
            guard health.provenSuccessAt == nil else { return }
            ruling.alarm = Alarm(
                kind: .clientUnproven,
                clientID: grant.clientID,
                text: "Google answers \(code) and no grant of this client was ever refreshed: is the client id right?"
            )
            return
        }
        var isClientFault = health.refusals.add(grant.id, at: moment.instant)
        if case .clientFault = health.breaker.reason { isClientFault = true }
        if isClientFault {
            blameClient(code, grant: &grant, health: &health, at: moment, ruling: &ruling)
        } else {
            grant.suspect(since: moment.now)
            retryForeign(&grant, health: health, at: moment, ruling: &ruling)
        }
    }

    private func retryForeign(_ grant: inout Grant, health: ClientHealth, at moment: Moment, ruling: inout Ruling) {
        retry(
            &grant,
            reason: .clientMismatchUnconfirmed,
            isUnderstood: false,
            health: health,
            at: moment,
            ruling: &ruling
        )
    }
}

import Clocks
import Observability
import Scheduler
import Store

/// The treatment of refusals in doubt, which may say more about Google or the client than about the grant.
extension RefreshRules {
    // MARK: invalid_grant

    /// Ends the grant, unless the client gets more `invalid_grant` than usual and this one is not confirmed yet.
    func doubtOrEnd(
        _ grant: inout Grant,
        health: inout ClientHealth,
        at moment: DecisionContext,
        ruling: inout RefreshDecision
    ) {
        let now = moment.now
        let awaitsSecondOpinion =
            grant.reason == .invalidGrantUnconfirmed || grant.state == .suspended && grant.suspectedSince != nil
        let isEarly = awaitsSecondOpinion && !(grant.dueAt.map { $0 <= now } ?? true)
        // Only first refusals count: the retry of a grant in doubt must not prolong the wave that it waits for.
        if !awaitsSecondOpinion { note(grant, saysInvalid: true, in: &health, at: moment) }
        let first = awaitsSecondOpinion ? min(grant.suspectedSince ?? now, now) : now
        // The refusal of a grant that never worked is not recorded, so that dead tokens which strangers bring cannot
        // look like a wave. It counts only in the decision about that grant.
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
            // A caller asked before the confirmation was due, so this is still the first refusal.
            grant.postpone(until: grant.dueAt ?? next, at: now)
        } else if grant.state == .suspended {
            // It shows as disconnected already, and must not show as connected because of this refusal.
            grant.postpone(until: next, at: now)
        } else {
            ruling.events = grant.retry(reason: .invalidGrantUnconfirmed, dueAt: next, at: now)
        }
        grant.suspect(since: first)
    }

    // MARK: Tokens of another client

    /// Decides about `unauthorized_client` and `invalid_request`: a fault of the client, or a foreign token.
    ///
    /// While other grants of the client are refreshed, the fault is with this grant. The suspicion is stored with the
    /// grant, so any number of foreign tokens can be distinguished from a client fault.
    func weighForeignToken(
        _ code: String,
        grant: inout Grant,
        health: inout ClientHealth,
        at moment: DecisionContext,
        ruling: inout RefreshDecision
    ) {
        let since = grant.reason == .invalidGrantUnconfirmed ? nil : grant.suspectedSince
        let othersSucceeded = since.map { since in health.provenSuccessAt.map { $0 > since } ?? false } ?? false
        guard othersSucceeded, let since else {
            // The suspicion starts again and needs later successes of other grants: until then the client itself may be
            // at fault.
            return weighFirstRefusal(code, grant: &grant, health: &health, at: moment, ruling: &ruling)
        }
        health.breaker.probeWasInconclusive(at: moment.instant)
        // Other grants must have succeeded since this grant's last attempt too: the client may have failed since the
        // suspicion.
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
        at moment: DecisionContext,
        ruling: inout RefreshDecision
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

    private func retryForeign(
        _ grant: inout Grant,
        health: ClientHealth,
        at moment: DecisionContext,
        ruling: inout RefreshDecision
    ) {
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

import Base
import Storage
import Telemetry

/// The rule about an answer that ends or suspends a grant: it might say more about Google than about the grant.
extension RefreshRules {
    /// The wait before a refusal in a wave is checked again.
    static let firstConfirmationAfter: Duration = .seconds(300)
    /// The times of the confirmations while the rate is unusual, counted from the first refusal: most waves last
    /// for minutes.
    static let confirmationTimes: [Duration] = [firstConfirmationAfter, .seconds(900), .seconds(1_800), maximumDoubt]
    /// The longest doubt about a refusal in a wave: a user who left shows as connected no longer than that.
    static let maximumDoubt: Duration = .seconds(3_000)

    /// Ends or suspends the grant, unless the client gets more refusals than usual and this one is not confirmed yet.
    func decideRefusal(_ ending: GrantState, _ reason: GrantReason, _ context: DecisionContext) -> RefreshDecision {
        let (grant, now) = (context.grant, context.now)
        // Nothing to doubt: a block that goes on, and an account that the worker has looked up itself.
        if grant.state == ending || reason == .accountMismatch {
            return end(as: ending, reason, grant, context.healthRecordingAnswer(isRefusal: false), at: now)
        }
        let isInDoubt = grant.isInDoubt
        let first = isInDoubt ? min(grant.suspectedSince ?? now, now) : now

        // Only first refusals count: the retry of a grant in doubt must not prolong the wave that it waits for.
        var health = isInDoubt ? context.health : context.healthRecordingAnswer(isRefusal: true)
        // The refusal of a grant that never worked is not recorded. It counts only in the decision about that grant.
        let isUncounted = !grant.isProven && now - first < RefusalRate.span
        let level = health.level(at: now, uncounted: isUncounted ? 1 : 0)
        let recalls = level == .wave ? health.takeUnconfirmedEnds(at: now) : []
        if level == .wave { health.unendedWaveAt = now }
        // A fault that always refuses the same grants brings no first refusal once all of them are in doubt. Then the rate
        // is as usual long before the fault is over, but none of them works again.
        let isOfUnendedWave = isInDoubt && health.hasUnendedWave(since: first)

        let isEarly = isInDoubt && !(grant.dueAt.map { $0 <= now } ?? true)
        // Another worker can hold the answer that spent the token, and not reach the database for a while.
        let lostAt = reason == .answerLost ? grant.answerLostAt : nil
        let isAnswerElsewhere = lostAt.map { now - $0 < Self.firstConfirmationAfter } ?? false
        let isUsual = level == .usual && !isOfUnendedWave
        let isDoubtOver = isInDoubt && now - first >= Self.maximumDoubt
        let isBelieved = !isEarly && !isAnswerElsewhere && (isUsual || isDoubtOver)

        var decision: RefreshDecision
        if isBelieved {
            if grant.isProven { health.recordEnd(of: grant.id, isConfirmed: isInDoubt, at: now) }
            decision = end(as: ending, reason, grant, health, at: now)
        } else {
            decision = doubt(reason, grant, health, since: first, isEarly: isEarly, at: now)
            if level == .wave {
                decision.alarm = (
                    kind: .grantsInDoubt,
                    text: """
                    the token endpoint refuses more grants than usual: each is confirmed for up to 50 minutes before it \
                    ends; see docs/runbook.md#google-refuses-many-grants
                    """
                )
            }
        }
        decision.recalls = recalls
        return decision
    }

    /// Ends or suspends the grant: the only place where a refusal does so.
    private func end(
        as ending: GrantState,
        _ reason: GrantReason,
        _ stored: Grant,
        _ health: ClientHealth,
        at now: Timestamp
    ) -> RefreshDecision {
        var grant = stored
        let outcome: RefreshOutcome
        let events: [GrantEvent]
        switch ending {
        case .suspended:
            outcome = .suspended
            events = grant.suspend(reason: reason, probeAt: now + Self.probeSuspendedAfter, at: now)
        case .reauthRequired:
            outcome = .reauthRequired
            events = grant.requireSignIn(reason: reason, at: now)
        case .disconnected, .active, .retrying:
            outcome = .disconnected
            events = grant.disconnect(reason: reason, at: now)
        }
        return RefreshDecision(outcome: outcome, grant: grant, events: events, health: health)
    }

    /// Keeps the grant until the next confirmation.
    private func doubt(
        _ reason: GrantReason,
        _ stored: Grant,
        _ health: ClientHealth,
        since first: Timestamp,
        isEarly: Bool,
        at now: Timestamp
    ) -> RefreshDecision {
        var grant = stored
        var events: [GrantEvent] = []
        let next =
            Self.confirmationTimes.first { now - first < $0 }.map { first + $0 } ?? now + Self.firstConfirmationAfter
        if isEarly {
            // A caller asked before the confirmation was due, so this is still the first refusal.
            grant.postpone(until: grant.dueAt ?? next, at: now)
        } else if grant.state == .suspended {
            // It shows as disconnected already, and must not show as connected because of this refusal.
            grant.postpone(until: next, at: now)
        } else {
            events = grant.retry(reason: reason.unconfirmed, dueAt: next, at: now)
        }
        grant.suspect(since: first)
        return RefreshDecision(outcome: .held, grant: grant, events: events, health: health)
    }
}

/// The rule about `unauthorized_client` and `invalid_request`: a fault of the client, or a foreign token.
extension RefreshRules {
    /// The time during which a proven grant might answer as if its token were foreign before its user is asked to sign
    /// in again.
    static let maximumDoubtAboutProvenGrant: Duration = .seconds(86_400)

    /// Ends a grant with a foreign token, once other grants of the client have succeeded since the suspicion.
    ///
    /// While other grants of the client are refreshed, the fault is with this grant. The suspicion is stored with the
    /// grant, so any number of foreign tokens can be distinguished from a client fault.
    func decideClientOrForeignToken(_ code: String, _ stored: DecisionContext) -> RefreshDecision {
        // The only suspicion of a suspended grant is a doubt about a refusal.
        let isOtherDoubt = stored.grant.isInDoubt || stored.grant.state == .suspended
        let since = isOtherDoubt ? nil : stored.grant.suspectedSince
        // A worker with a wrong secret would otherwise end grants that the other workers refresh.
        if let alarm = clientSecretsAlarm(code, stored) {
            var decision = decideFirstRefusal(code, stored)
            decision.alarm = alarm
            return decision
        }
        guard let since, stored.othersSucceeded(after: since) else {
            // The suspicion starts again and needs later successes of other grants: until then the client itself might
            // be at fault.
            var decision = decideFirstRefusal(code, stored)
            decision.needsWitness = since != nil && stored.health.provenSuccessAt != nil
            return decision
        }
        var context = stored
        context.health.breaker.probeWasInconclusive(at: context.instant)
        // Other grants must have succeeded since this grant's last attempt too: the client might have failed since the
        // suspicion.
        let isCurrent = context.grant.lastAttemptAt.map { context.othersSucceeded(after: $0) } ?? true
        let isOver = context.now - since >= Self.maximumDoubtAboutProvenGrant
        if !context.grant.isProven || isCurrent && isOver {
            return context.decision(.reauthRequired) { $0.requireSignIn(reason: .clientMismatch, at: context.now) }
        }
        var decision = retry(.clientMismatchUnconfirmed, isUnderstood: false, context)
        decision.alarm = (
            kind: .grantRefused,
            text: "a grant that used to work answers \(code) while others work; its user might have to sign in again"
        )
        return decision
    }

    /// Returns the alarm about a refused client secret, unless it is the one of the client's last success.
    func clientSecretsAlarm(_ code: String, _ context: DecisionContext) -> RefreshDecision.Alarm? {
        let (sent, health) = (context.result.clientSecret, context.health)
        guard health.provenSuccessAt != nil, sent != health.provenClientSecret else { return nil }
        return (
            kind: .clientSecretsDiffer,
            text: """
            Google answers \(code) to this worker, whose client secret is not the one of the last refresh that succeeded: \
            compare the client secret files of all workers, and reload them
            """
        )
    }

    /// Suspects the grant, or the client if many proven grants in a row were refused.
    private func decideFirstRefusal(_ code: String, _ stored: DecisionContext) -> RefreshDecision {
        var context = stored
        guard context.grant.isProven else {
            var decision = suspect(context, isUnderstood: true)
            guard context.health.provenSuccessAt == nil else { return decision }
            decision.alarm = (
                kind: .clientUnproven,
                text: """
                Google answers \(code) and no grant of this client was ever refreshed: is the client id right? If not, \
                move its grants: refresh-worker grants set-client --from \(context.grant.clientID) --to ID
                """
            )
            return decision
        }
        let isClientAtFault = context.health.refusals.add(context.grant.id, at: context.instant)
        if isClientAtFault || context.health.breaker.isOpenForClientFault { return decideClientFault(code, context) }
        return suspect(context, isUnderstood: false)
    }

    /// Tries the grant again, and records the time of this refusal.
    ///
    /// A suspended grant stays suspended, whatever other grants do: it shows as disconnected already.
    private func suspect(_ stored: DecisionContext, isUnderstood: Bool) -> RefreshDecision {
        var decision = retry(.clientMismatchUnconfirmed, isUnderstood: isUnderstood, stored)
        if stored.grant.state != .suspended { decision.grant?.suspect(since: stored.now) }
        return decision
    }
}

extension DecisionContext {
    /// `true` if a proven grant of the client was refreshed after that time.
    fileprivate func othersSucceeded(after time: Timestamp) -> Bool {
        health.provenSuccessAt.map { $0 > time } ?? false
    }
}

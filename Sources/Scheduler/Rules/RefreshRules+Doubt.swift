import Base
import Storage
import Telemetry

/// The rule about an answer that ends or suspends a grant: it might say more about Google than about the grant.
extension RefreshRules {
    /// The wait before a refusal in doubt is checked again.
    static let firstConfirmationAfter: Duration = .seconds(300)
    /// A grant that is recalled is in doubt from then on.
    static let recalledConfirmationAfter = firstConfirmationAfter
    /// The time that a lost response has to come before a refusal counts.
    static let maximumLostResponseWait: Duration = .seconds(300)
    /// The times of the confirmations while refusals are more than usual, in a wave or not, counted from the first
    /// refusal. Most waves last for minutes.
    static let confirmationTimes: [Duration] = [firstConfirmationAfter, .seconds(900), .seconds(1_800), maximumDoubt]
    /// The longest doubt about a refusal: a user who left shows as connected no longer than that. These 50 minutes have
    /// nothing to do with the period of ``DuePolicy``, which is as long for Google's tokens.
    static let maximumDoubt = Grant.maximumDoubt

    /// Ends or suspends the grant, unless the client gets more refusals than usual and this one is not confirmed yet.
    func decideRefusal(
        _ reason: GrantReason,
        ending: Refusal.Ending,
        in context: DecisionContext
    ) -> RefreshDecision {
        // Nothing to doubt: a block that goes on, and an account that the worker has looked up itself. Google has given a
        // token for that one, so it does not count as a refusal.
        if context.grant.state == ending.state || reason == .accountMismatch {
            let health = context.healthRecordingAnswer(isRefusal: false)
            return end(context.grant, as: ending, reason: reason, health: health, at: context.now)
        }
        let refusal = Refusal(reason, ending: ending, in: context)
        var decision = isBelieved(refusal) ? end(refusal) : doubt(refusal)
        decision.recalls = refusal.recalls
        return decision
    }

    private func isBelieved(_ refusal: Refusal) -> Bool {
        // A caller asked before the confirmation was due.
        if refusal.pendingConfirmation != nil { return false }
        if refusal.answerMightBeElsewhere { return false }
        if refusal.doubtIsOver { return true }
        switch refusal.rate {
        case .usual: return !refusal.isOfUnendedWave
        case .unusual, .wave: return false
        }
    }

    private func end(_ refusal: Refusal) -> RefreshDecision {
        var health = refusal.health
        if refusal.grant.isProven {
            health.recordEnd(of: refusal.grant.id, isConfirmed: refusal.isRepeated, at: refusal.now)
        }
        return end(refusal.grant, as: refusal.ending, reason: refusal.reason, health: health, at: refusal.now)
    }

    /// Ends or suspends the grant. Grants with a foreign token end in `RefreshRules+ForeignToken.swift`, grants without
    /// a refresh token in `RefreshRules+NoRequest.swift`.
    private func end(
        _ stored: Grant,
        as ending: Refusal.Ending,
        reason: GrantReason,
        health: ClientHealth,
        at now: Timestamp
    ) -> RefreshDecision {
        var grant = stored
        switch ending {
        case .suspended:
            let events = grant.suspend(reason: reason, probeAt: now + Self.probeSuspendedAfter, at: now)
            return RefreshDecision(outcome: .suspended, grant: grant, events: events, health: health)
        case .reauthRequired:
            let events = grant.requireSignIn(reason: reason, at: now)
            return RefreshDecision(outcome: .reauthRequired, grant: grant, events: events, health: health)
        case .disconnected:
            let events = grant.disconnect(reason: reason, at: now)
            return RefreshDecision(outcome: .disconnected, grant: grant, events: events, health: health)
        }
    }

    private func doubt(_ refusal: Refusal) -> RefreshDecision {
        var grant = refusal.grant
        var events: [GrantEvent] = []
        if let confirmation = refusal.pendingConfirmation {
            // This is still the first refusal.
            grant.postpone(until: confirmation, at: refusal.now)
        } else if grant.state == .suspended {
            // It shows as disconnected already, and must not show as connected because of this refusal.
            grant.postpone(until: refusal.nextConfirmation, at: refusal.now)
        } else {
            events = grant.retry(
                reason: refusal.reason.whileInDoubt,
                dueAt: refusal.nextConfirmation,
                at: refusal.now
            )
        }
        grant.suspect(since: refusal.firstAt)
        var decision = RefreshDecision(outcome: .held, grant: grant, events: events, health: refusal.health)
        if refusal.rate == .wave {
            decision.alarm = RefreshDecision.Alarm(
                kind: .grantsInDoubt,
                text: """
                    the token endpoint refuses more grants than usual: each is confirmed for up to \
                    \(Self.maximumDoubt.wholeMilliseconds / 60_000) minutes before it ends; see \
                    docs/runbook.md#google-refuses-many-grants
                    """
            )
        }
        return decision
    }
}

import Base
import Storage
import Telemetry

/// The rule about `invalid_grant`, which may say more about Google than about the grant.
extension RefreshRules {
    /// The wait before an `invalid_grant` in a wave is checked again.
    static let firstConfirmationAfter: Duration = .seconds(300)
    /// The times of the confirmations while the rate is unusual, counted from the first `invalid_grant`: most waves
    /// last for minutes.
    static let confirmationTimes: [Duration] = [
        firstConfirmationAfter, .seconds(900), .seconds(1_800), longestDoubt,
    ]
    /// The longest doubt about `invalid_grant` in a wave: a user who left shows as connected no longer than that.
    static let longestDoubt: Duration = .seconds(3_000)

    /// Ends the grant, unless the client gets more `invalid_grant` than usual and this one is not confirmed yet.
    func decideInvalidGrant(_ context: DecisionContext) -> RefreshDecision {
        let (grant, now) = (context.grant, context.now)
        let isInDoubt =
            grant.reason == .invalidGrantUnconfirmed || grant.state == .suspended && grant.suspectedSince != nil
        let first = isInDoubt ? min(grant.suspectedSince ?? now, now) : now

        // Only first refusals count: the retry of a grant in doubt must not prolong the wave that it waits for.
        var health = isInDoubt ? context.health : context.healthRecordingAnswer(isInvalidGrant: true)
        // The refusal of a grant that never worked is not recorded. It counts only in the decision about that grant.
        let isUncounted = !grant.isProven && now - first < InvalidGrantRate.span
        let level = health.level(at: now, uncounted: isUncounted ? 1 : 0)
        let recalls = level == .wave ? health.takeUnconfirmedEnds(at: now) : []

        let isEarly = isInDoubt && !(grant.dueAt.map { $0 <= now } ?? true)
        let isBelieved: Bool
        if isInDoubt {
            isBelieved = !isEarly && (level == .usual || now - first >= Self.longestDoubt)
        } else {
            // Another worker can hold the answer that spent the token, and not reach the database for a while.
            let isAnswerElsewhere = grant.answerLostAt.map { now - $0 < Self.firstConfirmationAfter } ?? false
            isBelieved = level == .usual && !isAnswerElsewhere
        }

        var decision: RefreshDecision
        if isBelieved {
            if grant.isProven { health.recordEnd(of: grant.id, isConfirmed: isInDoubt, at: now) }
            decision = end(grant, health, at: now)
        } else {
            decision = doubt(grant, health, since: first, isEarly: isEarly, at: now)
            if level == .wave { decision.alarm = waveAlarm(of: grant.clientID) }
        }
        decision.recalls = recalls
        return decision
    }

    private func waveAlarm(of clientID: String) -> Alarm {
        Alarm(
            kind: .grantsInDoubt,
            clientID: clientID,
            text: """
                Google answers invalid_grant for more grants than usual: each is confirmed for up to 50 minutes before \
                it ends; see docs/runbook.md#google-refuses-many-grants
                """
        )
    }

    /// Ends the grant: the only place where `invalid_grant` does so.
    private func end(_ stored: Grant, _ health: ClientHealth, at now: Timestamp) -> RefreshDecision {
        var grant = stored
        let reason: GrantReason = grant.answerLostAt == nil ? .invalidGrant : .answerLost
        let events = grant.disconnect(reason: reason, at: now)
        return RefreshDecision(.disconnected, grant: grant, events: events, health: health)
    }

    /// Keeps the grant until the next confirmation.
    private func doubt(
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
            events = grant.retry(reason: .invalidGrantUnconfirmed, dueAt: next, at: now)
        }
        grant.suspect(since: first)
        return RefreshDecision(.held, grant: grant, events: events, health: health)
    }
}

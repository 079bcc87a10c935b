import Base
import GoogleOAuth
import Storage
import Telemetry

/// The back-off of a grant after a failure that might pass.
extension RefreshRules {
    /// Tries the grant again after a back-off. `isUnderstood` is `false` for answers whose meaning is not known.
    func retry(
        _ reason: GrantReason,
        isUnderstood: Bool = true,
        notBefore: Duration? = nil,
        in context: DecisionContext
    ) -> RefreshDecision {
        let now = context.now
        var grant = context.grant
        if grant.state == .suspended {
            // A failed probe brings no news: the grant stays suspended and shows as disconnected.
            let wait = grant.isInDoubt ? backOff.maximum : BackOff.slowRetryInterval
            grant.postpone(until: now + max(wait, notBefore ?? .zero), at: now)
            return RefreshDecision(outcome: .retrying, grant: grant, health: context.health)
        }
        if let confirmation = grant.pendingConfirmation(at: now) {
            // A caller asked early. The failure neither confirms the doubt nor lets it begin anew.
            grant.postpone(until: confirmation, at: now)
            return RefreshDecision(outcome: .retrying, grant: grant, health: context.health)
        }
        let delay = backOffDelay(in: context, isUnderstood: isUnderstood)
        return context.decision(.retrying) {
            $0.retry(reason: reason, dueAt: now + max(delay, notBefore ?? .zero), at: now)
        }
    }

    private func backOffDelay(in context: DecisionContext, isUnderstood: Bool) -> Duration {
        let failures = failuresThatCount(in: context)
        if isUnderstood {
            return backOff.delay(failures: failures, remainingLife: context.remainingLife, jitter: context.jitter)
        }
        return backOff.delayForUnknown(
            failures: failures,
            failingFor: context.failingFor,
            remainingLife: context.remainingLife,
            jitter: context.jitter
        )
    }

    /// Returns the number of the grant's failures in a row, of which those in an outage count as one. The end of an
    /// outage clears the count for all grants: a failure by chance soon after it counts as a first one.
    private func failuresThatCount(in context: DecisionContext) -> Int {
        var countedFor = context.failingFor
        if let sinceOutage = context.timeSinceOutage { countedFor = min(countedFor, sinceOutage) }
        return min(context.grant.failures + 1, backOff.failures(within: countedFor))
    }
}

extension DecisionContext {
    /// The remaining life of the stored access token, which is not positive if it has expired.
    fileprivate var remainingLife: Duration? {
        guard let accessToken = grant.accessToken else { return nil }
        return accessToken.expiresAt - now
    }

    fileprivate var failingFor: Duration {
        guard let failingSince = grant.failingSince else { return .zero }
        return now - failingSince
    }

    fileprivate var timeSinceOutage: Duration? {
        // An end in the future was stored before the clock was set back.
        guard let endedAt = health.outageEndedAt, endedAt <= now else { return nil }
        return now - endedAt
    }
}

import Base
import GoogleOAuth
import Storage
import Telemetry

/// The rules about the client and the endpoint.
extension RefreshRules {
    /// Decides about a fault of the client: the grant stays as it is, and other grants are tried before it.
    func decideClientFault(_ code: String, in context: DecisionContext) -> RefreshDecision {
        var (grant, health) = (context.grant, context.health)
        let change = health.breaker.clientFault(code, at: context.instant, jitter: context.jitter)
        grant.postpone(until: context.now + BackOff.shortest * (1 + 4 * context.jitter), at: context.now)
        var decision = RefreshDecision(outcome: .unchanged, grant: grant, health: health)
        decision.effect.breakerChange = change
        return decision
    }
}

/// The rules that put a grant off: after a failure that might pass, and while it lacks a token or a key.
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
            grant.postpone(until: now + max(BackOff.slowRetryInterval, notBefore ?? .zero), at: now)
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

    /// Ends a grant without a refresh token once the app's own access token has expired.
    func endWithoutRefreshToken(in context: DecisionContext) -> RefreshDecision {
        var grant = context.grant
        if let expiresAt = grant.accessToken?.expiresAt, expiresAt > context.now {
            grant.reschedule(to: expiresAt)
            return RefreshDecision(outcome: .unchanged, grant: grant, health: context.health)
        }
        return context.decision(.reauthRequired) { $0.requireSignIn(reason: .noRefreshToken, at: context.now) }
    }

    /// Waits for the key of a token that cannot be opened, but for a day at most if it is a revocation.
    func waitForKey(in context: DecisionContext) -> RefreshDecision {
        var grant = context.grant
        let outcome: RefreshOutcome
        if context.isRevocationOverdue {
            outcome = .disconnected
            grant.finishRevocation()
        } else {
            outcome = .unchanged
            grant.postpone(until: context.now + Self.retryUnreadableAfter, at: context.now)
        }
        return RefreshDecision(
            outcome: outcome,
            grant: grant,
            health: context.health,
            alarm: RefreshDecision.Alarm(
                kind: .unreadableToken,
                text: "stored tokens cannot be opened with the key ring: put the missing key back, see `keys list`"
            )
        )
    }

    /// Deletes the tokens after a revocation, and tries a failed one again for a day.
    func finishRevocation(failure: LookupError?, in context: DecisionContext) -> RefreshDecision {
        var grant = context.grant
        guard grant.revocationAskedAt != nil else { return context.decision(.void) }
        if failure == nil || context.isRevocationOverdue {
            grant.finishRevocation()
        } else {
            let delay = backOff.delay(failures: grant.failures + 1, remainingLife: nil, jitter: context.jitter)
            grant.postponeRevocation(until: context.now + delay, at: context.now)
        }
        return RefreshDecision(outcome: .disconnected, grant: grant, health: context.health)
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

    /// `true` if a revocation was retried for so long that the tokens are deleted without it.
    fileprivate var isRevocationOverdue: Bool {
        guard let askedAt = grant.revocationAskedAt else { return false }
        return now - askedAt >= RefreshRules.maximumRevocation
    }
}

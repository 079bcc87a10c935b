import Base
import GoogleOAuth
import Storage
import Telemetry

/// The rules about the client and the endpoint.
extension RefreshRules {
    /// Decides about a fault of the client: the grant stays as it is, and other grants are tried before it.
    func decideClientFault(_ code: String, _ context: DecisionContext) -> RefreshDecision {
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
    /// Tries the grant again after a back-off.
    ///
    /// `isUnderstood` is `false` for answers whose meaning is not known.
    func retry(
        _ reason: GrantReason,
        isUnderstood: Bool = true,
        notBefore: Duration? = nil,
        _ context: DecisionContext
    ) -> RefreshDecision {
        let now = context.now
        var grant = context.grant
        if grant.state == .suspended {
            // A failed probe brings no news: the grant stays suspended and shows as disconnected.
            grant.postpone(until: now + max(BackOff.slowRetryInterval, notBefore ?? .zero), at: now)
            return RefreshDecision(outcome: .retrying, grant: grant, health: context.health)
        }
        let delay = backOffDelay(context, isUnderstood: isUnderstood)
        return context.decision(.retrying) {
            $0.retry(reason: reason, dueAt: now + max(delay, notBefore ?? .zero), at: now)
        }
    }

    private func backOffDelay(_ context: DecisionContext, isUnderstood: Bool) -> Duration {
        let failures = failuresThatCount(context)
        let remainingLife = context.grant.accessToken.map { $0.expiresAt - context.now }
        guard !isUnderstood else {
            return backOff.delay(failures: failures, remainingLife: remainingLife, jitter: context.jitter)
        }
        return backOff.delayForUnknown(
            failures: failures,
            failingFor: context.grant.failingSince.map { context.now - $0 } ?? .zero,
            remainingLife: remainingLife,
            jitter: context.jitter
        )
    }

    /// Returns the number of the grant's failures in a row, of which those in an outage count as one.
    ///
    /// The end of an outage clears the count for all grants: a failure by chance soon after it counts as a first one.
    private func failuresThatCount(_ context: DecisionContext) -> Int {
        let failingFor = context.grant.failingSince.map { context.now - $0 } ?? .zero
        let outageEndedFor = context.health.outageEndedAt.flatMap { $0 <= context.now ? context.now - $0 : nil }
        let countedFor = min(failingFor, outageEndedFor ?? failingFor)
        return min(context.grant.attempts + 1, backOff.failures(within: countedFor))
    }

    /// Ends a grant without a refresh token once the app's own access token has expired.
    func endWithoutRefreshToken(_ context: DecisionContext) -> RefreshDecision {
        var grant = context.grant
        if let expiresAt = grant.accessToken?.expiresAt, expiresAt > context.now {
            grant.reschedule(to: expiresAt)
            return RefreshDecision(outcome: .unchanged, grant: grant, health: context.health)
        }
        return context.decision(.reauthRequired) { $0.requireSignIn(reason: .noRefreshToken, at: context.now) }
    }

    /// Waits for the key of a token that cannot be opened, but for a day at most if it is a revocation.
    func waitForKey(_ context: DecisionContext) -> RefreshDecision {
        var grant = context.grant
        let isTooLate = grant.revocationAskedAt.map { context.now - $0 >= Self.maximumRevocation } ?? false
        if isTooLate {
            grant.finishRevocation()
        } else {
            grant.postpone(until: context.now + Self.retryUnreadableAfter, at: context.now)
        }
        let text = "stored tokens cannot be opened with the key ring: put the missing key back, see `keys list`"
        return RefreshDecision(
            outcome: isTooLate ? .disconnected : .unchanged,
            grant: grant,
            health: context.health,
            alarm: (kind: .unreadableToken, text: text)
        )
    }

    /// Deletes the tokens after a revocation, and tries a failed one again for a day.
    func finishRevocation(_ failure: LookupError?, _ context: DecisionContext) -> RefreshDecision {
        var grant = context.grant
        guard let askedAt = grant.revocationAskedAt else { return context.decision(.void) }
        if failure == nil || context.now - askedAt >= Self.maximumRevocation {
            grant.finishRevocation()
        } else {
            let delay = backOff.delay(failures: grant.attempts + 1, remainingLife: nil, jitter: context.jitter)
            grant.postponeRevocation(until: context.now + delay, at: context.now)
        }
        return RefreshDecision(outcome: .disconnected, grant: grant, health: context.health)
    }
}

import Base
import Storage
import Telemetry

/// The rules for a grant whose token cannot be sent: there is none, or no key opens it.
extension RefreshRules {
    /// Ends a grant without a refresh token once the app's own access token has expired.
    func decideWithoutRefreshToken(in context: DecisionContext) -> RefreshDecision {
        var grant = context.grant
        if let expiresAt = grant.accessToken?.expiresAt, expiresAt > context.now {
            grant.reschedule(to: expiresAt)
            return RefreshDecision(outcome: .unchanged, grant: grant, health: context.health)
        }
        return context.decision(.reauthRequired) { $0.requireSignIn(reason: .noRefreshToken, at: context.now) }
    }

    /// Waits for the key of a token that cannot be opened, but for a day at most if it is a revocation.
    func decideUnreadable(in context: DecisionContext) -> RefreshDecision {
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
}

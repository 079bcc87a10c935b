import Base
import GoogleOAuth
import Storage
import Telemetry

/// The rule about a revocation at Google.
extension RefreshRules {
    /// Deletes the tokens after a revocation, and tries a failed one again for a day.
    func decideRevocation(failure: LookupError?, in context: DecisionContext) -> RefreshDecision {
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
    /// `true` if a revocation was retried for so long that the tokens are deleted without it.
    var isRevocationOverdue: Bool {
        guard let askedAt = grant.revocationAskedAt else { return false }
        return now - askedAt >= RefreshRules.maximumRevocation
    }
}

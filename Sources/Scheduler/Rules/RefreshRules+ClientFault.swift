import Base
import Storage
import Telemetry

/// The rule about a client that the endpoint refuses.
extension RefreshRules {
    /// Decides about a fault of the client: the grant stays as it is, and other grants are tried before it.
    func decideClientFault(_ code: String, in context: DecisionContext) -> RefreshDecision {
        var (grant, health) = (context.grant, context.health)
        let change = health.breaker.clientFault(code, at: context.instant, jitter: context.jitter)
        grant.postpone(until: context.now + BackOff.minimum * (1 + 4 * context.jitter), at: context.now)
        var decision = RefreshDecision(outcome: .unchanged, grant: grant, health: health)
        decision.effect.breakerChange = change
        return decision
    }
}

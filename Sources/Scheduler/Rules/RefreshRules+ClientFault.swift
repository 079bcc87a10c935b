import Base
import Storage
import Telemetry

/// The rules about a client that the endpoint refuses.
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

    /// Decides about a refusal of the app, which shows nothing about the grant: no grant ends or is suspected by it.
    ///
    /// Google begins and ends to verify an app over minutes, in which some requests succeed. So the client is at fault
    /// only after a minute without a success. Until then each grant is tried again.
    func decideAppNotAuthentic(_ code: String, in stored: DecisionContext) -> RefreshDecision {
        var context = stored
        _ = context.health.clientErrors.add(context.grant.id, at: context.instant)
        if context.health.clientErrors.hasLasted(at: context.instant) || context.health.breaker.isOpenForClientFault {
            return decideClientFault(code, in: context)
        }
        return retry(GrantReason(rawValue: code), in: context)
    }
}

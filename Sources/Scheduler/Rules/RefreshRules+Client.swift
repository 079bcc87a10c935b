import Base
import GoogleOAuth
import Storage
import Telemetry

/// The rules about the client and the endpoint.
extension RefreshRules {
    /// Applies an answer to the health in the context, independently of the answer's effect on the grant.
    func applyToClient(_ context: inout DecisionContext) -> ClientEffect {
        var effect = ClientEffect()
        let wasFailing = context.health.breaker.endpointIsFailing
        switch context.result.answer {
        case .granted:
            effect.breakerChange = context.health.breaker.succeeded()
        case .failed(let verdict, let retryAfter):
            switch verdict {
            case .granted, .invalidGrant, .signInRequired, .blocked:
                effect.breakerChange = context.health.breaker.succeeded()
            case .noAnswer, .endpointFault, .notJSON:
                effect.breakerChange = context.health.breaker.endpointFailed(
                    grant: context.result.attempt.grant.rawValue,
                    at: context.instant,
                    unit: context.unit
                )
            case .throttled:
                var pacer = Pacer(maxRate: maxRate)
                pacer.limits = context.health.limits
                _ = pacer.throttled(retryAfter: retryAfter, at: context.instant)
                effect.limitsChanged = pacer.limits != context.health.limits
                context.health.limits = pacer.limits
            case .clientOrForeignToken where !context.health.breaker.isOpenForClientFault:
                // The endpoint works, even if the client or the grant is at fault.
                effect.breakerChange = context.health.breaker.succeeded()
            case .clientFault, .clientOrForeignToken, .flawed, .notSent, .givenUp, .unknown:
                // `refuse` decides about the first two together with the grant; the others say nothing about the
                // client.
                break
            }
        case .flawed, .nothingToSend, .unreadable, .revocation:
            break
        }
        effect.endsOutage = context.health.recordOutage(wasFailing: wasFailing, at: context.now, context.instant)
        return effect
    }

    /// Decides about a fault of the client: the grant stays as it is, and other grants are tried before it.
    func decideClientFault(_ code: String, _ context: DecisionContext) -> RefreshDecision {
        var (grant, health) = (context.grant, context.health)
        let change = health.breaker.clientFault(code, at: context.instant, unit: context.unit)
        grant.postpone(until: context.now + BackOff.shortest * (1 + 4 * context.unit), at: context.now)
        var decision = RefreshDecision(.unchanged, grant: grant, health: health)
        decision.breakerChange = change
        return decision
    }
}

import Clocks
import GoogleOAuth
import Observability
import Scheduler
import Store

/// The effect of an answer on its client, independent of the grant's fate.
struct ClientEffect {
    var health: ClientHealth
    var breakerChange: Breaker.Change?
    var limitsChanged = false
    var endsOutage = false
}

/// The rules about the client and the endpoint.
extension RefreshRules {
    func effectOnClient(_ context: DecisionContext) -> ClientEffect {
        var effect = ClientEffect(health: context.health)
        switch context.result.answer {
        case .granted:
            effect.breakerChange = effect.health.breaker.succeeded()
        case .refused(let verdict, let retryAfter):
            switch verdict {
            case .granted, .invalidGrant, .signInRequired, .blocked:
                effect.breakerChange = effect.health.breaker.succeeded()
            case .noAnswer, .endpointFault, .notJSON:
                effect.breakerChange = effect.health.breaker.endpointFailed(
                    grant: context.result.attempt.grant.rawValue,
                    at: context.instant,
                    unit: context.unit
                )
            case .throttled:
                var pacer = Pacer(maxRate: maxRate)
                pacer.limits = context.health.limits
                _ = pacer.throttled(retryAfter: retryAfter, at: context.instant)
                effect.limitsChanged = pacer.limits != context.health.limits
                effect.health.limits = pacer.limits
            case .clientOrForeignToken where !context.health.breaker.isOpenForClientFault:
                // The endpoint works, even if the client or the grant is at fault.
                effect.breakerChange = effect.health.breaker.succeeded()
            case .clientFault, .clientOrForeignToken, .flawed, .notSent, .givenUp, .unknown:
                // The first two are judged together with the grant, in `refuse`; the others say nothing about the
                // client.
                break
            }
        case .flawed, .nothingToSend, .unreadable, .revocation:
            break
        }
        effect.endsOutage = endsOutage(from: context.health, to: effect.health, context)
        let failsStill = effect.health.breaker.hasEndpointFailures
        effect.health.failingSince = failsStill ? context.health.failingSince ?? context.instant : nil
        if effect.endsOutage { effect.health.outageEndedAt = context.now }
        return effect
    }

    /// `true` if the endpoint works again after an outage.
    ///
    /// Five failures and one success are an outage only if they took a while and no outage has ended shortly before.
    private func endsOutage(
        from before: ClientHealth,
        to after: ClientHealth,
        _ context: DecisionContext
    ) -> Bool {
        guard before.breaker.endpointIsFailing, !after.breaker.endpointIsFailing else { return false }
        let failedFor = before.failingSince.map { context.instant - $0 } ?? .zero
        let endedLately =
            before.outageEndedAt.map { $0 <= context.now && context.now - $0 < Breaker.shortestRetryInterval } ?? false
        return failedFor >= Breaker.shortestOutage && !endedLately
    }

    /// Blames the client: the grant stays as it is, and other grants are tried before it.
    func blameClient(_ code: String, _ context: DecisionContext) -> RefreshDecision {
        var (grant, health) = (context.grant, context.health)
        let change = health.breaker.clientFault(code, at: context.instant, unit: context.unit)
        grant.postpone(until: context.now + BackOff.shortest * (1 + 4 * context.unit), at: context.now)
        var decision = RefreshDecision(.unchanged, grant: grant, health: health)
        decision.breakerChange = change
        return decision
    }
}

extension Breaker {
    /// `true` while it is open because the endpoint refuses the client itself.
    var isOpenForClientFault: Bool {
        guard case .clientFault = reason else { return false }
        return true
    }
}

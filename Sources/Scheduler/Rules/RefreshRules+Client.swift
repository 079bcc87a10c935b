import Base
import Storage
import Telemetry

/// The rule about `unauthorized_client` and `invalid_request`: a fault of the client, or a foreign token.
extension RefreshRules {
    /// The time during which a proven grant may answer as if its token were foreign before its user is asked to sign in
    /// again.
    static let longestDoubtAboutProvenGrant: Duration = .seconds(86_400)

    /// Ends a grant with a foreign token, once other grants of the client have succeeded since the suspicion.
    ///
    /// While other grants of the client are refreshed, the fault is with this grant. The suspicion is stored with the
    /// grant, so any number of foreign tokens can be distinguished from a client fault.
    func decideClientOrForeignToken(_ code: String, _ stored: DecisionContext) -> RefreshDecision {
        // The only suspicion of a suspended grant is a doubt about an invalid_grant.
        let isOtherDoubt = stored.grant.reason == .invalidGrantUnconfirmed || stored.grant.state == .suspended
        let since = isOtherDoubt ? nil : stored.grant.suspectedSince
        // A worker with a wrong secret would otherwise end grants that the other workers refresh.
        if let alarm = clientSecretsAlarm(code, stored) {
            var decision = decideFirstRefusal(code, stored)
            decision.alarm = alarm
            return decision
        }
        guard let since, stored.othersSucceeded(after: since) else {
            // The suspicion starts again and needs later successes of other grants: until then the client itself may be
            // at fault.
            var decision = decideFirstRefusal(code, stored)
            decision.needsWitness = since != nil && stored.health.provenSuccessAt != nil
            return decision
        }
        var context = stored
        context.health.breaker.probeWasInconclusive(at: context.instant)
        // Other grants must have succeeded since this grant's last attempt too: the client may have failed since the
        // suspicion.
        let isCurrent = context.grant.lastAttemptAt.map { context.othersSucceeded(after: $0) } ?? true
        let isOver = context.now - since >= Self.longestDoubtAboutProvenGrant
        if !context.grant.isProven || isCurrent && isOver {
            let events = context.grant.requireSignIn(reason: .clientMismatch, at: context.now)
            return RefreshDecision(.reauthRequired, grant: context.grant, events: events, health: context.health)
        }
        var decision = retry(.clientMismatchUnconfirmed, isUnderstood: false, context)
        decision.alarm = Alarm(
            kind: .grantRefused,
            clientID: context.grant.clientID,
            text: "a grant that used to work answers \(code) while others work; its user may have to sign in again"
        )
        return decision
    }

    /// Returns the alarm about a refused client secret, unless it is the one of the client's last success.
    func clientSecretsAlarm(_ code: String, _ context: DecisionContext) -> Alarm? {
        let (sent, health) = (context.result.clientSecret, context.health)
        guard health.provenSuccessAt != nil, sent != health.provenClientSecret else { return nil }
        return Alarm(
            kind: .clientSecretsDiffer,
            clientID: context.grant.clientID,
            text: """
                Google answers \(code) to this worker, whose client secret is not the one of the last refresh that succeeded: \
                compare the client secret files of all workers, and reload them
                """
        )
    }

    /// Suspects the grant, or the client if many proven grants in a row were refused.
    private func decideFirstRefusal(_ code: String, _ stored: DecisionContext) -> RefreshDecision {
        var context = stored
        guard context.grant.isProven else {
            var decision = suspect(context, isUnderstood: true)
            guard context.health.provenSuccessAt == nil else { return decision }
            decision.alarm = Alarm(
                kind: .clientUnproven,
                clientID: context.grant.clientID,
                text: """
                    Google answers \(code) and no grant of this client was ever refreshed: is the client id right? If not, \
                    move its grants: refresh-worker grants set-client --from \(context.grant.clientID) --to ID
                    """
            )
            return decision
        }
        let isClientAtFault = context.health.refusals.add(context.grant.id, at: context.instant)
        if isClientAtFault || context.health.breaker.isOpenForClientFault { return decideClientFault(code, context) }
        return suspect(context, isUnderstood: false)
    }

    /// Tries the grant again, and records the time of this refusal.
    ///
    /// A suspended grant stays suspended, whatever other grants do: it shows as disconnected already.
    private func suspect(_ stored: DecisionContext, isUnderstood: Bool) -> RefreshDecision {
        var decision = retry(.clientMismatchUnconfirmed, isUnderstood: isUnderstood, stored)
        if stored.grant.state != .suspended { decision.grant?.suspect(since: stored.now) }
        return decision
    }
}

extension DecisionContext {
    /// `true` if a proven grant of the client was refreshed after that time.
    fileprivate func othersSucceeded(after time: Timestamp) -> Bool {
        health.provenSuccessAt.map { $0 > time } ?? false
    }
}

/// The rules about the client and the endpoint.
extension RefreshRules {
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

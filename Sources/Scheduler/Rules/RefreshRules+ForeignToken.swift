import Base
import Storage
import Telemetry

/// The rule about `unauthorized_client` and `invalid_request`: a fault of the client, or a foreign token.
extension RefreshRules {
    /// The time during which a proven grant might answer as if its token were foreign before its user is asked to sign
    /// in again.
    static let maximumDoubtAboutProvenGrant: Duration = .seconds(86_400)

    /// Ends a grant with a foreign token, once other grants of the client have succeeded since its first such error.
    ///
    /// While others are refreshed, the fault is with this grant. The suspicion is stored with the grant, so any number
    /// of foreign tokens can be distinguished from a client fault.
    func decideClientOrForeignToken(_ code: String, in context: DecisionContext) -> RefreshDecision {
        if let alarm = clientSecretsAlarm(about: code, in: context) {
            // A worker with a wrong secret would otherwise end grants that the other workers refresh.
            var decision = suspectGrantOrClient(code, in: context)
            decision.alarm = alarm
            return decision
        }
        guard let since = context.grant.foreignTokenSuspectedSince else {
            return suspectGrantOrClient(code, in: context)
        }
        guard context.othersSucceeded(after: since) else {
            // The suspicion starts again and needs later successes of other grants: until then the client itself might
            // be at fault.
            var decision = suspectGrantOrClient(code, in: context)
            decision.needsHealthyGrant = context.health.provenSuccessAt != nil
            return decision
        }
        var context = context
        context.health.breaker.probeWasInconclusive(at: context.instant)
        if context.isForeignToken(suspectedSince: since) {
            return context.decision(.reauthRequired) { $0.requireSignIn(reason: .clientMismatch, at: context.now) }
        }
        var decision = retry(.clientMismatchUnconfirmed, isUnderstood: false, in: context)
        decision.alarm = RefreshDecision.Alarm(
            kind: .grantRefused,
            text: "a grant that used to work answers \(code) while others work; its user might have to sign in again"
        )
        return decision
    }

    /// Returns the alarm about a refused client secret, unless it is the one of the client's last success.
    func clientSecretsAlarm(about code: String, in context: DecisionContext) -> RefreshDecision.Alarm? {
        let health = context.health
        guard health.provenSuccessAt != nil, context.result.secretFingerprint != health.provenSecretFingerprint else {
            return nil
        }
        return RefreshDecision.Alarm(
            kind: .clientSecretsDiffer,
            text: """
                Google answers \(code) to this worker, whose client secret is not the one of the last refresh that succeeded: \
                compare the client secret files of all workers, and reload them
                """
        )
    }

    /// Suspects the grant, or the client if many proven grants in a row had such errors.
    private func suspectGrantOrClient(_ code: String, in stored: DecisionContext) -> RefreshDecision {
        guard stored.grant.isProven else {
            var decision = suspect(stored, isUnderstood: true)
            if stored.health.provenSuccessAt == nil { decision.alarm = clientUnprovenAlarm(about: code, in: stored) }
            return decision
        }
        var context = stored
        let isClientAtFault = context.health.clientErrors.add(context.grant.id, at: context.instant)
        if isClientAtFault || context.health.breaker.isOpenForClientFault {
            return decideClientFault(code, in: context)
        }
        return suspect(context, isUnderstood: false)
    }

    private func clientUnprovenAlarm(about code: String, in context: DecisionContext) -> RefreshDecision.Alarm {
        RefreshDecision.Alarm(
            kind: .clientUnproven,
            text: """
                Google answers \(code) and no grant of this client was ever refreshed: is the client id right? If not, \
                move its grants: refresh-worker grants set-client --from \(context.grant.clientID) --to ID
                """
        )
    }

    /// Tries the grant again, and records the time of this error. A suspended grant stays suspended, whatever other
    /// grants do: it shows as disconnected already.
    private func suspect(_ stored: DecisionContext, isUnderstood: Bool) -> RefreshDecision {
        var decision = retry(.clientMismatchUnconfirmed, isUnderstood: isUnderstood, in: stored)
        let isStillInDoubt = decision.grant?.isInDoubt ?? false
        if stored.grant.state != .suspended, !isStillInDoubt { decision.grant?.suspect(since: stored.now) }
        return decision
    }
}

extension DecisionContext {
    /// `true` if a proven grant of the client was refreshed after that time.
    fileprivate func othersSucceeded(after time: Timestamp) -> Bool {
        guard let provenSuccessAt = health.provenSuccessAt else { return false }
        return provenSuccessAt > time
    }

    /// `true` if the fault is the grant's own, after others have succeeded since its first error.
    ///
    /// A grant that used to work has a day. Others must have succeeded since its last attempt too, because the client
    /// might have failed since the first error.
    fileprivate func isForeignToken(suspectedSince since: Timestamp) -> Bool {
        guard grant.isProven else { return true }
        if now - since < RefreshRules.maximumDoubtAboutProvenGrant { return false }
        guard let lastAttemptAt = grant.lastAttemptAt else { return true }
        return othersSucceeded(after: lastAttemptAt)
    }
}

import Base
import GoogleOAuth
import Storage
import Telemetry

/// Decides how an answer changes its grant and its client's health. Three others change them too:
///
/// - `RestoredGrant.swift` advances a grant from a restored backup before the rules decide about it.
/// - `ResultCommitter+Commit.swift` handles a grant that is gone, recalls grants, and makes the other grants of an
///   account due after a revocation.
/// - ``ClientHealth/add(_:at:instant:)`` changes the health for plain refreshes, which are stored without it.
///
/// Pure: each rule reads a ``DecisionContext`` and returns a ``RefreshDecision``, with the changed copies of the grant
/// and the health. The store takes a decision only if it was made about the stored grant. Otherwise the rules decide
/// again, inside the transaction. Plain refreshes are decided before the store is called.
/// `ParsedRefreshResponse.swift` reads the meaning of an answer. `Grant+Life.swift` defines the changes of state.
///
///     let rules = RefreshRules(maxRate: 200)
///     let decision = rules.decide(context)    // about an `invalid_grant`
///
///     // As many refusals as usual: the grant has ended.
///     decision.outcome                        // .disconnected
///     // More than usual: it is in doubt, and due again in five minutes.
///     decision.outcome                        // .held
package struct RefreshRules: Sendable {
    /// The number of rotated tokens lost within ten minutes that is too large for chance.
    static let droppedTokensToAlarm = 5
    /// The interval between the probes of a suspended grant.
    package static let probeSuspendedAfter: Duration = .seconds(86_400)
    /// The wait before a grant whose stored token cannot be opened is tried again.
    static let retryUnreadableAfter: Duration = .seconds(600)
    /// The time during which a revocation is retried. After it the tokens are deleted anyway. Otherwise those of
    /// deleted users would stay for as long as a key is missing or Google cannot be reached.
    static let maximumRevocation: Duration = .seconds(86_400)

    /// The time for which a server might go on working on a request that the worker does not wait for any more. It
    /// begins at the request's deadline of 15 seconds. A server that rotates must not see the token again before.
    static let maximumUnansweredWork: Duration = .seconds(30)

    let backOff = BackOff(first: .seconds(10), maximum: .seconds(600))
    /// The highest number of requests per second of one client.
    let maxRate: Double

    /// Decides about a result: first about the client, and then about the grant. It consumes the context, because
    /// copies of grants are costly.
    func decide(_ context: consuming DecisionContext) -> RefreshDecision {
        // A commit whose confirmation was lost is repeated, although it might have been done.
        if let outcome = outcomeIfStored(in: context) { return context.decision(outcome) }
        let formerScope = context.grant.scope
        let effect = applyToClient(in: &context)
        let heldLease = context.takeLease()

        var decision: RefreshDecision
        if context.isCurrent {
            decision = decideAboutGrant(in: &context, holdsLease: heldLease != nil)
            if let heldLease { leaveAloneIfUnanswered(&decision, under: heldLease, in: context) }
        } else {
            decision = decideLate(in: &context)
        }
        // A function of its own, because the compiler copies a decision that is changed and returned in one.
        addConsequences(to: &decision, effect: effect, formerScope: formerScope, in: context)
        return decision
    }

    /// Keeps the lease of a request that the server might still be working on.
    private func leaveAloneIfUnanswered(
        _ decision: inout RefreshDecision,
        under lease: Lease,
        in context: DecisionContext
    ) {
        guard context.result.answer.isOutcomeUnknown else { return }
        decision.grant?.leaveAlone(
            under: lease,
            for: Self.maximumUnansweredWork,
            at: context.now,
            instant: context.instant
        )
    }

    /// Adds what follows from any decision: the effect on the client, the end of the account, the rotation, and lost
    /// scopes.
    private func addConsequences(
        to decision: inout RefreshDecision,
        effect: ClientEffect,
        formerScope: String,
        in context: DecisionContext
    ) {
        // A fault of the client is decided with the grant, so its change of the breaker comes with the decision.
        let breakerChange = decision.effect.breakerChange ?? effect.breakerChange
        decision.effect = effect
        decision.effect.breakerChange = breakerChange
        if case .revocation = context.result.answer { decision.endsAccount = true }
        if let rotated = context.result.answer.rotated, decision.grant?.refreshToken?.sealed == rotated.sealed {
            decision.grant?.recordRotation(by: context.result.claim.number)
        }
        if let scope = decision.grant?.scope { decision.lostScopes = ScopeName.lost(from: formerScope, to: scope) }
    }

    /// Applies an answer to the health in the context, independently of the answer's effect on the grant.
    private func applyToClient(in context: inout DecisionContext) -> ClientEffect {
        var effect = ClientEffect()
        let former = context.health.breaker
        if let code = context.result.failureCode {
            context.health.failures.record(code, status: context.result.status, at: context.now)
        }
        switch context.result.answer {
        case .granted: effect.breakerChange = context.health.breaker.succeeded()
        case .failed(let failure, let retryAfter):
            switch failure {
            case .invalidGrant, .signInRequired, .blocked:
                effect.breakerChange = context.health.breaker.succeeded()
            case .noAnswer, .endpointFault, .notJSON:
                effect.breakerChange = context.health.breaker.endpointFailed(
                    grant: context.result.claim.grant.rawValue,
                    at: context.instant,
                    jitter: context.jitter
                )
            case .throttled:
                var pacer = Pacer(maxRate: maxRate)
                pacer.limits = context.health.limits
                _ = pacer.throttled(retryAfter: retryAfter, at: context.instant)
                effect.limitsChanged = pacer.limits != context.health.limits
                context.health.limits = pacer.limits
            case .clientOrForeignToken where !former.isOpenForClientFault,
                .appNotAuthentic where !former.isOpenForClientFault,
                .proofRefused where !former.isOpenForClientFault:
                // The endpoint works, even if the client or the grant is at fault.
                effect.breakerChange = context.health.breaker.succeeded()
            case .clientFault, .clientOrForeignToken, .appNotAuthentic, .proofRefused, .notSent, .givenUp, .unknown:
                // `decideFailure` decides about the first three together with the grant. The others say nothing about
                // the client.
                break
            }
        case .flawed, .withoutRefreshToken, .unreadable, .revocation: break
        }
        effect.endsOutage = context.health.recordOutage(after: former, at: context.now, instant: context.instant)
        return effect
    }

    /// Decides by the answer to the current refresh token. Without the lease, only an answer with tokens counts.
    private func decideAboutGrant(in context: inout DecisionContext, holdsLease: Bool) -> RefreshDecision {
        // An earlier worker died, perhaps after Google had rotated the token. That stays known until a refresh succeeds.
        if context.result.claim.followsUnfinishedClaim { context.grant.recordLostAnswer(at: context.now) }
        switch context.result.answer {
        case .granted(let tokens):
            // A good answer counts regardless of the current lease: a rotated token must not be lost.
            return decideGranted(tokens, in: &context)
        case .flawed(let code, let rotated):
            return decideFlawed(rotated, code: code, holdsLease: holdsLease, in: context)
        case _ where !holdsLease: return context.decision(.lostLease)
        case .failed(let failure, let retryAfter): return decideFailure(failure, retryAfter: retryAfter, in: context)
        case .withoutRefreshToken: return decideWithoutRefreshToken(in: context)
        case .unreadable: return decideUnreadable(in: context)
        case .revocation(let failure): return decideRevocation(failure: failure, in: context)
        }
    }

    /// Stores the tokens of a good answer. It changes the grant and the health of the context in place, since changes
    /// of a copy would copy their arrays.
    ///
    /// ``ClientHealth/add(_:at:instant:)`` does the same to the health for plain refreshes: change both.
    func decideGranted(_ tokens: RefreshedTokens, in context: inout DecisionContext) -> RefreshDecision {
        let now = context.now
        context.health.recordAnswer(isRefusal: false, at: now)
        context.health.provenSuccessAt = now
        context.health.provenSecretFingerprint = context.result.secretFingerprint
        context.health.clientErrors = ConsecutiveClientErrors()
        // Attempts that callers cause do not count: their refusals do not either.
        let isConfirmation = context.grant.isConfirmation(at: now)
        if isConfirmation, context.grant.isProven { context.health.lastWave?.recordRecovery() }
        let isQuick = DuePolicy.isQuick(tokens.accessToken, afterSuccessAt: context.grant.lastSuccessAt, at: now)
        if context.wasDisabledInFlight {
            // An answer from before the account was disabled does not lift that.
            let events = context.grant.store(tokens, isQuick: isQuick, at: now)
            return RefreshDecision(outcome: .suspended, grant: context.grant, events: events, health: context.health)
        }
        let events = context.grant.refreshed(tokens, isQuick: isQuick, at: now) {
            DuePolicy.dueAfterRefresh($0, within: tokens.refreshTokenTimeout, at: now)
        }
        let isLoop = context.grant.quickRefreshes > DuePolicy.quickRefreshesAllowed
        return RefreshDecision(
            outcome: .refreshed,
            grant: context.grant,
            events: events,
            health: context.health,
            alarm: isLoop ? refreshLoopAlarm(about: context.grant) : nil
        )
    }

    private func refreshLoopAlarm(about grant: Grant) -> RefreshDecision.Alarm {
        RefreshDecision.Alarm(
            kind: .refreshLoop,
            text: """
                grant \(grant.id) was refreshed \(grant.quickRefreshes) times in a row long before its token ends, and is slowed \
                down: look for a caller that rejects every token, or a token endpoint whose tokens are dead
                """
        )
    }

    /// Stores the refresh token of a faulty answer, and tries the grant again.
    private func decideFlawed(
        _ rotated: Grant.RefreshToken?,
        code: String,
        holdsLease: Bool,
        in stored: DecisionContext
    ) -> RefreshDecision {
        var context = stored
        let events = context.grant.rotate(to: rotated, at: context.now)
        var decision = holdsLease ? retry(GrantReason(rawValue: code), in: context) : context.decision(.lostLease)
        decision.events = events + decision.events
        return decision
    }

    private func decideFailure(
        _ failure: RefreshFailure,
        retryAfter: Duration?,
        in context: DecisionContext
    ) -> RefreshDecision {
        switch failure {
        case .invalidGrant:
            let isAnswerLost = context.grant.answerLostAt != nil
            return decideRefusal(isAnswerLost ? .answerLost : .invalidGrant, ending: .disconnected, in: context)
        case .signInRequired(let code):
            return decideRefusal(GrantReason(rawValue: code), ending: .reauthRequired, in: context)
        case .blocked(let code):
            return decideRefusal(GrantReason(rawValue: code), ending: .suspended, in: context)
        case .clientFault(let code):
            var decision = decideClientFault(code, in: context)
            if code == "invalid_client" { decision.alarm = clientSecretsAlarm(about: code, in: context) }
            return decision
        case .clientOrForeignToken(let code): return decideClientOrForeignToken(code, in: context)
        case .appNotAuthentic: return decideAppNotAuthentic(failure.code, in: context)
        case .proofRefused(let code): return decideProofRefused(code, in: context)
        case .throttled, .endpointFault, .noAnswer, .givenUp:
            return retry(GrantReason(rawValue: failure.code), notBefore: retryAfter, in: context)
        case .notJSON:
            // A page of a proxy, which does not know when Google can be asked again.
            return retry(GrantReason(rawValue: failure.code), in: context)
        case .unknown(let code):
            var decision = retry(GrantReason(rawValue: code), isUnderstood: false, in: context)
            decision.alarm = RefreshDecision.Alarm(
                kind: .unknownAnswer,
                text: "the token endpoint gave an answer of an unknown kind (\(GrantReason(rawValue: code)))"
            )
            return decision
        // The committer ends these before: there is nothing to decide.
        case .notSent: return context.decision(.unchanged)
        }
    }
}

extension DecisionContext {
    fileprivate var wasDisabledInFlight: Bool {
        grant.reason == .accountDisabled && grant.lastAttemptAt != result.claim.lastAttemptAt
    }
}

import Clocks
import GoogleOAuth
import Observability
import Scheduler
package import Store

/// Decides how an answer changes its grant and its client's health: the only place that decides this.
///
/// Pure: it takes a result, and the stored grant and health, and changes both. It runs inside the store's transaction,
/// so no other worker's answer can come between. `RefreshVerdict+Reading.swift` reads the meaning of an answer;
/// `Grant+Life.swift` defines the changes of state.
package struct RefreshRules: Sendable {
    /// The wait before an `invalid_grant` in a wave is checked again.
    package static let secondOpinionAfter: Duration = .seconds(300)
    /// The times of the confirmations while the rate is unusual, counted from the first `invalid_grant`: most waves
    /// last for minutes.
    static let opinions: [Duration] = [secondOpinionAfter, .seconds(900), .seconds(1_800), longestDoubt]
    /// The longest doubt about `invalid_grant` in a wave: a user who left shows as connected no longer than that.
    package static let longestDoubt: Duration = .seconds(3_000)
    /// The number of rotated tokens lost within ten minutes that is too large for chance.
    package static let droppedTokensToAlarm = 5
    /// The interval between the probes of a suspended grant.
    package static let probeSuspendedAfter: Duration = .seconds(86_400)
    /// The time during which a proven grant may answer as if its token were foreign before its user is asked to sign in
    /// again.
    package static let patienceWithProvenGrant: Duration = .seconds(86_400)
    /// The wait before a grant whose stored token cannot be opened is tried again.
    package static let lookAgainAfter: Duration = .seconds(600)
    /// The time during which a revocation is retried; after it the tokens are deleted anyway.
    package static let revocationPatience: Duration = .seconds(86_400)

    let backOff = BackOff()
    /// The requests per second of one client; a halved ceiling is half of it.
    private let maxRate: Double

    package init(maxRate: Double) {
        self.maxRate = maxRate
    }

    package func decide(
        _ finding: RefreshResult,
        grant: inout Grant,
        health: inout ClientHealth,
        at moment: DecisionContext
    ) -> RefreshDecision {
        let former = grant.scope
        var ruling = rule(on: finding, grant: &grant, health: &health, at: moment)
        ruling.lostScopes = ScopeName.lost(from: former, to: grant.scope)
        return ruling
    }

    private func rule(
        on finding: RefreshResult,
        grant: inout Grant,
        health: inout ClientHealth,
        at moment: DecisionContext
    ) -> RefreshDecision {
        var ruling = RefreshDecision(outcome: .unchanged)
        // A commit whose confirmation was lost is repeated, although it may have been done.
        if let outcome = outcomeIfStored(finding, grant) {
            ruling.outcome = outcome
            return ruling
        }
        learn(finding, health: &health, at: moment, ruling: &ruling)
        defer {
            if let rotated = finding.rotated, grant.refreshToken?.sealed == rotated.sealed {
                grant.noteRotation(by: finding.attempt.claim)
            }
        }

        let holdsLease = grant.lease?.claim == finding.attempt.claim
        if holdsLease { grant.setLease(nil) }
        guard grant.generation == finding.attempt.generation else {
            decideLate(finding, grant: &grant, health: &health, at: moment, ruling: &ruling)
            return ruling
        }
        // The mark stays until a refresh succeeds: the earlier process died, perhaps after Google rotated the token.
        if finding.attempt.followsUnsettledClaim { grant.noteLostAnswer(at: moment.now) }
        switch finding.answer {
        case .granted(let tokens):
            // A good answer counts regardless of the current lease: a rotated token must not be lost.
            accept(tokens, of: finding.attempt, grant: &grant, health: &health, at: moment, ruling: &ruling)
        case .flawed(let code, let rotated):
            ruling.events = grant.rotate(to: rotated, at: moment.now)
            ruling.outcome = .lostLease
            if holdsLease { retry(&grant, code: code, health: health, at: moment, ruling: &ruling) }
        case _ where !holdsLease:
            ruling.outcome = .lostLease
        case .refused(let verdict, let retryAfter):
            refuse(verdict, retryAfter: retryAfter, grant: &grant, health: &health, at: moment, ruling: &ruling)
        case .nothingToSend:
            runOut(&grant, at: moment, ruling: &ruling)
        case .unreadable:
            lookAgain(at: &grant, at: moment, ruling: &ruling)
            ruling.alarm = Alarm(
                kind: .unreadableToken,
                clientID: grant.clientID,
                text: "stored tokens cannot be opened with the key ring: put the missing key back, see `keys list`"
            )
        case .revocation(let failure):
            finishRevocation(failure, grant: &grant, at: moment, ruling: &ruling)
        }
        return ruling
    }

    // MARK: The client

    /// Applies an answer to the health of the client and of the endpoint, independent of the grant's fate.
    private func learn(
        _ finding: RefreshResult,
        health: inout ClientHealth,
        at moment: DecisionContext,
        ruling: inout RefreshDecision
    ) {
        let wasFailing = health.breaker.endpointIsFailing
        defer {
            let failedFor = health.failingSince.map { moment.instant - $0 } ?? .zero
            health.failingSince = health.breaker.hasEndpointFailures ? health.failingSince ?? moment.instant : nil
            // Five failures and one success are an outage only if they took a while and no outage has ended shortly
            // before.
            let endedLately =
                health.outageEndedAt.map { $0 <= moment.now && moment.now - $0 < Breaker.pauseBetweenOutages } ?? false
            ruling.endsOutage =
                wasFailing && !health.breaker.endpointIsFailing && failedFor >= Breaker.shortestOutage && !endedLately
            if ruling.endsOutage { health.outageEndedAt = moment.now }
        }
        switch finding.answer {
        case .granted:
            ruling.breakerChange = health.breaker.succeeded()
        case .refused(let verdict, let retryAfter):
            switch verdict {
            case .granted, .invalidGrant, .signInRequired, .blocked:
                ruling.breakerChange = health.breaker.succeeded()
            case .noAnswer, .endpointFault, .notJSON:
                ruling.breakerChange = health.breaker.endpointFailed(
                    grant: finding.attempt.grant.rawValue,
                    at: moment.instant,
                    unit: moment.unit
                )
            case .throttled:
                var pacer = Pacer(maxRate: maxRate)
                pacer.limits = health.limits
                _ = pacer.throttled(retryAfter: retryAfter, at: moment.instant)
                ruling.limitsChanged = pacer.limits != health.limits
                health.limits = pacer.limits
            case .clientOrForeignToken where health.breaker.reason == nil || health.breaker.reason == .endpointFailing:
                // The endpoint works, even if the client or the grant is at fault.
                ruling.breakerChange = health.breaker.succeeded()
            case .clientFault, .clientOrForeignToken, .flawed, .notSent, .givenUp, .unknown:
                // The first two are judged together with the grant, in `refuse`; the others say nothing about the
                // client.
                break
            }
        case .flawed, .nothingToSend, .unreadable, .revocation:
            break
        }
    }

    // MARK: The grant

    func accept(
        _ tokens: RefreshedTokens,
        of attempt: RefreshAttempt,
        grant: inout Grant,
        health: inout ClientHealth,
        at moment: DecisionContext,
        ruling: inout RefreshDecision
    ) {
        health.note(saysInvalid: false, at: moment.now)
        health.provenSuccessAt = moment.now
        health.refusals = ConsecutiveRefusals()
        let isQuick = DueTimes.isQuick(tokens.accessToken, afterSuccessAt: grant.lastSuccessAt, at: moment.now)
        // The account was disabled while the request was in flight: an answer from before that does not lift it.
        if grant.reason == .accountDisabled, grant.lastAttemptAt != attempt.lastAttemptAt {
            ruling.events = grant.store(tokens, isQuick: isQuick, at: moment.now)
            ruling.outcome = .suspended
            return
        }
        ruling.events = grant.refreshed(tokens, isQuick: isQuick, at: moment.now) {
            DueTimes.dueAfterRefresh($0, at: moment.now)
        }
        ruling.outcome = .refreshed
        guard grant.quickRefreshes > DuePolicy.quickRefreshesAllowed else { return }
        ruling.alarm = Alarm(
            kind: .refreshLoop,
            clientID: grant.clientID,
            text: """
                grant \(grant.id) was refreshed \(grant.quickRefreshes) times in a row long before its token ends, and is slowed \
                down: look for a caller that rejects every token, or a token endpoint whose tokens are dead
                """
        )
    }

    private func refuse(
        _ verdict: RefreshVerdict,
        retryAfter: Duration?,
        grant: inout Grant,
        health: inout ClientHealth,
        at moment: DecisionContext,
        ruling: inout RefreshDecision
    ) {
        switch verdict {
        case .invalidGrant:
            doubtOrEnd(&grant, health: &health, at: moment, ruling: &ruling)
        case .signInRequired(let code):
            note(grant, saysInvalid: false, in: &health, at: moment)
            ruling.events = grant.requireSignIn(reason: GrantReason(rawValue: code), at: moment.now)
            ruling.outcome = .reauthRequired
        case .blocked(let code):
            note(grant, saysInvalid: false, in: &health, at: moment)
            let probeAt = moment.now + Self.probeSuspendedAfter
            ruling.events = grant.suspend(reason: GrantReason(rawValue: code), probeAt: probeAt, at: moment.now)
            ruling.outcome = .suspended
        case .clientFault(let code):
            blameClient(code, grant: &grant, health: &health, at: moment, ruling: &ruling)
        case .clientOrForeignToken(let code):
            weighForeignToken(code, grant: &grant, health: &health, at: moment, ruling: &ruling)
        case .unknown(let code):
            retry(&grant, code: code, isUnderstood: false, health: health, at: moment, ruling: &ruling)
            ruling.alarm = Alarm(
                kind: .unknownAnswer,
                clientID: grant.clientID,
                text: "the token endpoint gave an answer of an unknown kind (\(GrantReason(rawValue: code)))"
            )
        case .throttled(let code), .endpointFault(let code), .noAnswer(let code), .givenUp(let code),
            .flawed(let code, _):
            retry(&grant, code: code, notBefore: retryAfter, health: health, at: moment, ruling: &ruling)
        case .notJSON:
            retry(&grant, code: verdict.code, health: health, at: moment, ruling: &ruling)
        case .granted, .notSent:
            // `granted` has a case of its own in `Answer`; a request that was not sent changes nothing.
            ruling.outcome = .unchanged
        }
    }

    /// Blames the client: the grant stays as it is, and other grants are tried before it.
    func blameClient(
        _ code: String,
        grant: inout Grant,
        health: inout ClientHealth,
        at moment: DecisionContext,
        ruling: inout RefreshDecision
    ) {
        ruling.breakerChange = health.breaker.clientFault(code, at: moment.instant, unit: moment.unit)
        grant.postpone(until: moment.now + BackOff.shortest * (1 + 4 * moment.unit), at: moment.now)
        ruling.outcome = .unchanged
    }

    /// Ends a grant without a refresh token once the app's own access token has expired.
    private func runOut(_ grant: inout Grant, at moment: DecisionContext, ruling: inout RefreshDecision) {
        if let expiresAt = grant.accessToken?.expiresAt, expiresAt > moment.now {
            grant.reschedule(to: expiresAt)
            ruling.outcome = .unchanged
        } else {
            ruling.events = grant.requireSignIn(reason: .noRefreshToken, at: moment.now)
            ruling.outcome = .reauthRequired
        }
    }

    /// Waits for the key of a token that cannot be opened; a revocation waits for a day at most.
    private func lookAgain(at grant: inout Grant, at moment: DecisionContext, ruling: inout RefreshDecision) {
        if let askedAt = grant.revocationAskedAt, moment.now - askedAt >= Self.revocationPatience {
            grant.finishRevocation()
            ruling.outcome = .disconnected
            return
        }
        grant.postpone(until: moment.now + Self.lookAgainAfter, at: moment.now)
    }

    private func finishRevocation(
        _ failure: LookupFailure?,
        grant: inout Grant,
        at moment: DecisionContext,
        ruling: inout RefreshDecision
    ) {
        ruling.outcome = .disconnected
        let askedAt = grant.revocationAskedAt ?? moment.now
        guard failure != nil, moment.now - askedAt < Self.revocationPatience else {
            grant.finishRevocation()
            return
        }
        let delay = backOff.delay(failures: grant.attempts + 1, remainingLife: nil, unit: moment.unit)
        grant.postponeRevocation(until: moment.now + delay, at: moment.now)
    }

    // MARK: Trying again

    private func retry(
        _ grant: inout Grant,
        code: String,
        isUnderstood: Bool = true,
        notBefore: Duration? = nil,
        health: ClientHealth,
        at moment: DecisionContext,
        ruling: inout RefreshDecision
    ) {
        retry(
            &grant,
            reason: GrantReason(rawValue: code),
            isUnderstood: isUnderstood,
            notBefore: notBefore,
            health: health,
            at: moment,
            ruling: &ruling
        )
    }

    func retry(
        _ grant: inout Grant,
        reason: GrantReason,
        isUnderstood: Bool = true,
        notBefore: Duration? = nil,
        health: ClientHealth,
        at moment: DecisionContext,
        ruling: inout RefreshDecision
    ) {
        let life = grant.accessToken.map { $0.expiresAt - moment.now }
        let failingFor = grant.failingSince.map { moment.now - $0 } ?? .zero
        // The end of an outage clears the count for all grants: a failure by chance soon after it counts as a first
        // one.
        let outageEndedFor = health.outageEndedAt.flatMap { $0 <= moment.now ? moment.now - $0 : nil }
        let countedFor = min(failingFor, outageEndedFor ?? failingFor)
        let failures = min(grant.attempts + 1, backOff.failures(within: countedFor))
        let delay =
            isUnderstood
            ? backOff.delay(failures: failures, remainingLife: life, unit: moment.unit)
            : backOff.delayForUnknown(
                failures: failures,
                failingFor: failingFor,
                remainingLife: life,
                unit: moment.unit
            )
        ruling.outcome = .retrying
        if grant.state == .suspended {
            // A failed probe brings no news: the grant stays suspended and shows as disconnected.
            grant.postpone(until: moment.now + max(BackOff.slowPace, notBefore ?? .zero), at: moment.now)
        } else {
            let dueAt = moment.now + max(delay, notBefore ?? .zero)
            ruling.events += grant.retry(reason: reason, dueAt: dueAt, at: moment.now)
        }
    }

    func note(_ grant: Grant, saysInvalid: Bool, in health: inout ClientHealth, at moment: DecisionContext) {
        guard grant.isProven else { return }
        health.note(saysInvalid: saysInvalid, at: moment.now)
    }
}

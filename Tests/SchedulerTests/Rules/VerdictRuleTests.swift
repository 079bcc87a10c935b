import Base
import Crypto
import GoogleOAuth
import Storage
import Telemetry
import Testing

@testable import Scheduler

/// A verdict and its effect on a proven grant outside a wave.
private struct Rule: Sendable, CustomTestStringConvertible {
    var verdict: RefreshFailure
    var outcome: RefreshOutcome
    /// The new state of a connected grant; `nil` if it keeps its state.
    var state: GrantState?
    /// The new state of a suspended grant.
    var stateIfSuspended: GrantState
    var reason: String?
    var raisesAlarm = false

    var testDescription: String { verdict.code }
}

private let rules: [Rule] = [
    Rule(
        verdict: .invalidGrant,
        outcome: .disconnected,
        state: .disconnected,
        stateIfSuspended: .disconnected,
        reason: "invalid_grant"
    ),
    Rule(
        verdict: .signInRequired(code: "invalid_rapt"),
        outcome: .reauthRequired,
        state: .reauthRequired,
        stateIfSuspended: .reauthRequired,
        reason: "invalid_rapt"
    ),
    Rule(
        verdict: .blocked(code: "admin_policy_enforced"),
        outcome: .suspended,
        state: .suspended,
        stateIfSuspended: .suspended,
        reason: "admin_policy_enforced"
    ),
    Rule(
        verdict: .clientFault(code: "invalid_client"),
        outcome: .unchanged,
        state: nil,
        stateIfSuspended: .suspended,
        reason: nil
    ),
    Rule(
        verdict: .appNotAuthentic,
        outcome: .retrying,
        state: .retrying,
        stateIfSuspended: .suspended,
        reason: "app_not_authentic"
    ),
    Rule(
        verdict: .proofRefused(code: "invalid_dpop_proof"),
        outcome: .retrying,
        state: .retrying,
        stateIfSuspended: .suspended,
        reason: "invalid_dpop_proof",
        raisesAlarm: true
    ),
    Rule(
        verdict: .throttled(code: "http_429"),
        outcome: .retrying,
        state: .retrying,
        stateIfSuspended: .suspended,
        reason: "http_429"
    ),
    Rule(
        verdict: .endpointFault(code: "http_503"),
        outcome: .retrying,
        state: .retrying,
        stateIfSuspended: .suspended,
        reason: "http_503"
    ),
    Rule(
        verdict: .noAnswer(code: "timeout"),
        outcome: .retrying,
        state: .retrying,
        stateIfSuspended: .suspended,
        reason: "timeout"
    ),
    Rule(
        verdict: .notJSON,
        outcome: .retrying,
        state: .retrying,
        stateIfSuspended: .suspended,
        reason: "not_json"
    ),
    Rule(
        verdict: .unknown(code: "brand_new"),
        outcome: .retrying,
        state: .retrying,
        stateIfSuspended: .suspended,
        reason: "brand_new",
        raisesAlarm: true
    ),
    Rule(verdict: .notSent(code: "withheld"), outcome: .unchanged, state: nil, stateIfSuspended: .suspended),
]

@Suite("The effect of a verdict on a grant")
struct VerdictRuleTests {
    @Test("Each verdict on a grant in each state that is refreshed", arguments: rules)
    fileprivate func table(rule: Rule) throws {
        for state in [GrantState.active, .retrying, .suspended] {
            let reason = state == .suspended ? GrantReason(rawValue: "access_denied") : .none
            var grant = try Sample.grant(state: state, reason: reason)
            let before = grant
            var fixture = RulesFixture()
            let decision = fixture.refuse(rule.verdict, on: &grant)

            let expected = state == .suspended ? rule.stateIfSuspended : rule.state ?? state
            #expect(decision.outcome == rule.outcome)
            #expect(grant.state == expected)
            #expect((decision.alarm != nil) == rule.raisesAlarm)
            #expect((grant.lease != nil) == rule.verdict.isOutcomeUnknown)
            let keepsReason = rule.reason == nil || (state == .suspended && expected == .suspended)
            let isBlockedAgain = rule.outcome == .suspended
            #expect(grant.reason.rawValue == (keepsReason && !isBlockedAgain ? before.reason.rawValue : rule.reason))
            #expect(grant.generation == before.generation + (expected.endsRefreshes ? 1 : 0))
            #expect(grant.refreshToken == before.refreshToken)
            #expect((grant.dueAt == nil) == expected.endsRefreshes)
            #expect(decision.events.contains { $0.kind == .state } == (expected != state || isBlockedAgain))
            if let event = decision.events.first {
                #expect(event.from == state && event.to == grant.state && event.reason == grant.reason)
            }
        }
    }

    @Test("A good answer makes each refreshed grant active", arguments: [GrantState.active, .retrying, .suspended])
    func granted(state: GrantState) throws {
        var grant = try Sample.grant(state: state, failures: 4, failingSince: start - .seconds(60))
        var fixture = RulesFixture()
        let decision = fixture.decide(try Sample.granted(), on: &grant)
        #expect(decision.outcome == .refreshed)
        #expect(grant.state == .active && grant.reason == .none)
        #expect(grant.failures == 0 && grant.failingSince == nil)
        #expect(grant.lastSuccessAt == start && grant.isProven)
        #expect(grant.generation == 3)
        let dueAt = try #require(grant.dueAt)
        #expect((.seconds(2700) ... .seconds(3300)).contains(dueAt - start))
        #expect(fixture.health.provenSuccessAt == start)
    }

    @Test("A rotated token is stored with its access token, and the generation grows")
    func rotation() throws {
        var grant = try Sample.grant()
        var fixture = RulesFixture()
        let successor = try Sample.refreshToken("successor")
        let decision = fixture.decide(try Sample.granted(rotated: successor), on: &grant)
        #expect(decision.outcome == .refreshed)
        #expect(grant.refreshToken == successor)
        #expect(grant.generation == 4)
        #expect(decision.events.map(\.kind) == [.rotated])
    }

    @Test("The timeout of a refresh token brings the due time forward")
    func refreshTokenTimeout() throws {
        var rules = RulesFixture()
        var grant = try Sample.grant()
        let tokens = RefreshedTokens(accessToken: try Sample.accessToken(), refreshTokenTimeout: .seconds(600))
        _ = rules.decide(.granted(tokens), on: &grant)
        #expect(grant.dueAt == start + .seconds(300))
    }

    @Test("A faulty 200 is tried again, and the refresh token in it is stored", arguments: [true, false])
    func flawed(rotates: Bool) throws {
        for state in [GrantState.active, .suspended] {
            var grant = try Sample.grant(state: state)
            var fixture = RulesFixture()
            let successor = rotates ? try Sample.refreshToken("successor") : nil
            let decision = fixture.decide(.flawed(code: "flawed_answer", rotated: successor), on: &grant)
            #expect(decision.outcome == .retrying)
            #expect(grant.state == (state == .active ? .retrying : .suspended))
            #expect(try grant.refreshToken == (rotates ? successor : Sample.refreshToken()))
            #expect(grant.generation == (rotates ? 4 : 3))
            #expect(decision.events.contains { $0.kind == .rotated } == rotates)
            #expect(fixture.health.breaker.isOpen == false)
        }
    }

    @Test("Waits double up to ten minutes, and shrink with the remaining life of the token")
    func backOff() throws {
        var grant = try Sample.grant()
        var fixture = RulesFixture()
        fixture.jitter = 0
        var waits: [Duration] = []
        for _ in 0..<9 {
            _ = fixture.refuse(.endpointFault(code: "http_500"), on: &grant)
            waits.append(try #require(grant.dueAt) - fixture.now)
            fixture.advance(by: waits[waits.count - 1])
        }
        #expect(waits.map(\.inSeconds) == [10, 20, 40, 80, 160, 320, 600, 600, 600])
        #expect(grant.failures == 9 && grant.failingSince == start)

        let token = try Sample.accessToken(obtainedAt: start - .seconds(3600), lifetime: .seconds(3690))
        fixture = RulesFixture()
        fixture.jitter = 0
        var living = try Sample.grant(accessToken: token, failures: 8, failingSince: start - .seconds(3600))
        _ = fixture.refuse(.endpointFault(code: "http_500"), on: &living)
        #expect(try #require(living.dueAt) - fixture.now == .seconds(30))
    }

    @Test("An unknown answer is retried hourly after a day")
    func unknownSlowsDown() throws {
        var grant = try Sample.grant(state: .retrying, failures: 50, failingSince: start - .seconds(86_399))
        var fixture = RulesFixture()
        fixture.jitter = 0
        _ = fixture.refuse(.unknown(code: "new"), on: &grant)
        #expect(try #require(grant.dueAt) - fixture.now == .seconds(600))
        fixture.advance(by: .seconds(1))
        _ = fixture.refuse(.unknown(code: "new"), on: &grant)
        #expect(try #require(grant.dueAt) - fixture.now == .seconds(3600))
    }

    @Test("A blocked grant is probed a day later, and again while it is blocked")
    func suspended() throws {
        var grant = try Sample.grant()
        var fixture = RulesFixture()
        _ = fixture.refuse(.blocked(code: "policy_enforced"), on: &grant)
        #expect(grant.dueAt == start + .seconds(86_400))
        fixture.advance(by: .seconds(86_400))
        let decision = fixture.refuse(.blocked(code: "policy_enforced"), on: &grant)
        #expect(decision.outcome == .suspended && decision.events.isEmpty)
        #expect(grant.since == start)
        #expect(grant.dueAt == start + .seconds(2 * 86_400))
    }

    @Test("A grant waits at least as long as Retry-After", arguments: [0, 7, 1800])
    func retryAfter(seconds: Int) throws {
        for verdict in [RefreshFailure.throttled(code: "http_429"), .endpointFault(code: "http_503")] {
            var grant = try Sample.grant()
            var fixture = RulesFixture()
            _ = fixture.refuse(verdict, on: &grant, retryAfter: .seconds(seconds))
            #expect(try #require(grant.dueAt) - start == .seconds(max(5, seconds)))
        }
    }

    @Test("Without a refresh token a grant lasts as long as the app's own access token")
    func noRefreshToken() throws {
        let token = try Sample.accessToken(lifetime: .seconds(100))
        var grant = try Sample.grant(isProven: false, hasRefreshToken: false, accessToken: token)
        var fixture = RulesFixture()
        #expect(fixture.decide(.withoutRefreshToken, on: &grant).outcome == .unchanged)
        #expect(grant.state == .active && grant.dueAt == start + .seconds(100))
        fixture.advance(by: .seconds(100))
        let decision = fixture.decide(.withoutRefreshToken, on: &grant)
        #expect(decision.outcome == .reauthRequired)
        #expect(grant.state == .reauthRequired && grant.reason == .noRefreshToken && grant.dueAt == nil)
        #expect(decision.events.count == 1)
        #expect(fixture.health == ClientHealth(epoch: "boot"))
    }

    @Test("A token that no key opens changes nothing, and is tried again ten minutes later")
    func unreadable() throws {
        for state in [GrantState.active, .retrying, .suspended] {
            var grant = try Sample.grant(state: state)
            var fixture = RulesFixture()
            let decision = fixture.decide(.unreadable(.notSealed), on: &grant)
            #expect(decision.outcome == .unchanged && decision.alarm?.kind == .unreadableToken)
            #expect(grant.state == state && grant.generation == 3)
            #expect(grant.dueAt == start + .seconds(600))
        }
    }

    @Test("A revocation is tried for a day; then the tokens are deleted anyway")
    func revocation() throws {
        var grant = try Sample.grant()
        var fixture = RulesFixture()
        _ = grant.disconnectByRequest(revokes: true, at: start)
        #expect(grant.generation == 4)
        for _ in 0..<3 {
            #expect(
                fixture.decide(.revocation(failure: .unavailable(code: "connect")), on: &grant).outcome == .disconnected
            )
            #expect(grant.refreshToken != nil && grant.revocationAskedAt == start)
            #expect(try #require(grant.dueAt) > fixture.now)
            fixture.advance(by: .seconds(3600))
        }
        fixture.advance(by: .seconds(86_400))
        _ = fixture.decide(.revocation(failure: .unavailable(code: "connect")), on: &grant)
        #expect(grant.refreshToken == nil && grant.accessToken == nil)
        #expect(grant.revocationAskedAt == nil && grant.dueAt == nil)
        #expect(grant.state == .disconnected && grant.reason == .userRequest)
    }

    @Test("A revocation whose token cannot be opened is given up after a day: the tokens are deleted")
    func unreadableRevocation() throws {
        var grant = try Sample.grant()
        var fixture = RulesFixture()
        _ = grant.disconnectByRequest(revokes: true, at: start)
        #expect(fixture.decide(.unreadable(.notSealed), on: &grant).alarm?.kind == .unreadableToken)
        #expect(grant.refreshToken != nil && grant.revocationAskedAt == start)
        #expect(grant.dueAt == start + .seconds(600))
        fixture.advance(by: .seconds(86_400))
        #expect(fixture.decide(.unreadable(.notSealed), on: &grant).outcome == .disconnected)
        #expect(grant.refreshToken == nil && grant.revocationAskedAt == nil && grant.dueAt == nil)
    }

    @Test("A revocation that Google confirms deletes the tokens at once")
    func revoked() throws {
        var grant = try Sample.grant()
        var fixture = RulesFixture()
        _ = grant.disconnectByRequest(revokes: true, at: start)
        #expect(fixture.decide(.revocation(failure: nil), on: &grant).outcome == .disconnected)
        #expect(grant.refreshToken == nil && grant.dueAt == nil)
    }
}

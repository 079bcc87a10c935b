import Base
import Crypto
import GoogleOAuth
import Telemetry
import Testing

@testable import Scheduler
@testable import Storage

@Suite("The fence and the lease")
struct FenceTests {
    private static let refusals: [RefreshFailure] = [
        .invalidGrant, .signInRequired(code: "invalid_rapt"), .blocked(code: "policy_enforced"),
        .clientFault(code: "invalid_client"), .clientOrForeignToken(code: "unauthorized_client"),
        .throttled(code: "http_429"), .endpointFault(code: "http_503"), .noAnswer(code: "timeout"), .notJSON,
        .unknown(code: "new"), .proofRefused(code: "invalid_dpop_proof"),
    ]

    private static var answers: [RefreshResult.Answer] {
        get throws {
            refusals.map { .failed($0, retryAfter: nil) }
                + [
                    try Sample.granted(), try Sample.granted(rotated: Sample.refreshToken("late")),
                    .flawed(code: "flawed_answer", rotated: try Sample.refreshToken("late")), .withoutRefreshToken,
                    .unreadable(.notSealed), .revocation(failure: nil),
                ]
        }
    }

    @Test("An answer to an older refresh token changes nothing but gives the lease back")
    func oldGeneration() throws {
        for answer in try Self.answers {
            for state in GrantState.allCases {
                var grant = try Sample.grant(state: state, accessToken: Sample.accessToken())
                let before = grant
                var fixture = RulesFixture()
                let decision = fixture.decide(answer, on: &grant, generation: 2)
                #expect(decision.outcome == .void)
                #expect(decision.events.isEmpty && decision.recalls.isEmpty)
                #expect(grant == before, "\(answer)")
            }
        }
    }

    @Test("An answer that is void for its grant still counts for the client's health")
    func healthLearns() throws {
        var grant = try Sample.grant()
        var fixture = RulesFixture()
        _ = fixture.decide(.failed(.throttled(code: "http_429"), retryAfter: .seconds(60)), on: &grant, generation: 2)
        #expect(fixture.health.limits.pausedUntil == fixture.instant + .seconds(60))
        for number in 0..<20 {
            var other = try Sample.grant(Int64(number))
            _ = fixture.decide(.failed(.noAnswer(code: "timeout"), retryAfter: nil), on: &other, generation: 2)
        }
        #expect(fixture.health.breaker.isOpen)
    }

    @Test("A void invalid_grant does not count towards a wave")
    func voidIsNoWave() throws {
        var fixture = RulesFixture()
        for number in 0..<40 {
            var grant = try Sample.grant(Int64(number))
            _ = fixture.decide(.failed(.invalidGrant, retryAfter: nil), on: &grant, generation: 2)
        }
        #expect(fixture.health.rate == RefusalRate())
    }

    @Test("A refusal under an expired claim does not count", arguments: [nil, 78] as [Int64?])
    func refusalUnderExpiredClaim(lease: Int64?) throws {
        for verdict in Self.refusals {
            var grant = try Sample.grant(accessToken: Sample.accessToken())
            let before = grant
            var fixture = RulesFixture()
            let decision = fixture.decide(.failed(verdict, retryAfter: nil), on: &grant, leasedAs: lease)
            #expect(decision.outcome == .lostLease)
            #expect(decision.events.isEmpty)
            #expect(grant.lease?.claim == lease, "another worker's lease stays")
            grant.setLease(nil)
            #expect(grant == before, "\(verdict.code)")
        }
    }

    @Test("The lease outlives a request whose outcome is unknown, and no other", arguments: [true, false])
    func unknownOutcome(isUnknown: Bool) throws {
        var grant = try Sample.grant()
        var fixture = RulesFixture()
        let timeout = RefreshFailure.noAnswer(code: "timeout", outcomeUnknown: isUnknown)
        #expect(fixture.refuse(timeout, on: &grant).outcome == .retrying)
        let span = RefreshRules.maximumUnansweredWork
        #expect(grant.lease?.until == (isUnknown ? fixture.instant + span : nil))
        #expect(try #require(grant.dueAt) >= fixture.now + (isUnknown ? span : .seconds(1)))
        #expect(try #require(grant.dueAt) <= fixture.now + (isUnknown ? span : .seconds(10)))
    }

    @Test("A success under an expired claim counts", arguments: [nil, 78] as [Int64?])
    func successUnderExpiredClaim(lease: Int64?) throws {
        var grant = try Sample.grant(state: .retrying)
        var fixture = RulesFixture()
        let successor = try Sample.refreshToken("successor")
        let decision = fixture.decide(try Sample.granted(rotated: successor), on: &grant, leasedAs: lease)
        #expect(decision.outcome == .refreshed)
        #expect(grant.state == .active && grant.refreshToken == successor && grant.generation == 4)
        #expect(grant.lease?.claim == lease, "another worker's lease stays")
    }

    @Test("The refresh token in a faulty 200 is stored even if another worker has the lease now")
    func rotationUnderExpiredClaim() throws {
        var grant = try Sample.grant()
        var fixture = RulesFixture()
        let successor = try Sample.refreshToken("successor")
        let answer = RefreshResult.Answer.flawed(code: "flawed_answer", rotated: successor)
        let decision = fixture.decide(answer, on: &grant, leasedAs: 78)
        #expect(decision.outcome == .lostLease)
        #expect(grant.refreshToken == successor && grant.generation == 4)
        #expect(grant.state == .active && grant.failures == 0)
        #expect(grant.lease?.claim == 78)
    }

    @Test("A refreshed token replaces a stored one that claims to live longer")
    func refreshedTokenWins() throws {
        let stored = try Sample.accessToken("app's own", lifetime: .seconds(3600))
        var grant = try Sample.grant(accessToken: stored)
        var fixture = RulesFixture()
        fixture.advance(by: .seconds(10))
        let decision = fixture.decide(try Sample.granted(at: fixture.now, lifetime: .seconds(600)), on: &grant)
        #expect(decision.outcome == .refreshed)
        #expect(grant.accessToken?.sealed == (try Sample.sealed("new access")))
        #expect(try #require(grant.dueAt) > fixture.now)
    }

    @Test("A token that comes late does not replace one that was obtained after it")
    func lateToken() throws {
        var fixture = RulesFixture()
        fixture.advance(by: .seconds(100))
        let stored = try Sample.accessToken("newer", obtainedAt: fixture.now - .seconds(10))
        var grant = try Sample.grant(accessToken: stored)
        #expect(fixture.decide(try Sample.granted(at: start), on: &grant).outcome == .refreshed)
        #expect(grant.accessToken == stored)
        #expect(try #require(grant.dueAt) > fixture.now)
    }

    @Test("An expiry beyond the longest possible lifetime is cut off")
    func boundedLifetime() throws {
        var grant = try Sample.grant()
        var fixture = RulesFixture()
        _ = fixture.decide(try Sample.granted(lifetime: .seconds(400 * 86_400)), on: &grant)
        #expect(grant.accessToken?.expiresAt == start + .seconds(86_400))
    }

    @Test("A result that is stored already, because its commit's confirmation was lost, changes nothing")
    func storedAlready() throws {
        var fixture = RulesFixture()
        var grant = try Sample.grant()
        let answer = try Sample.granted(at: fixture.now)
        #expect(fixture.decide(answer, on: &grant).outcome == .refreshed)
        let (stored, health) = (grant, fixture.health)
        fixture.advance(by: .seconds(5))
        let again = fixture.decide(answer, on: &grant, leasedAs: nil)
        #expect(again.outcome == .refreshed && again.events.isEmpty)
        #expect(grant == stored && fixture.health == health)
    }
}

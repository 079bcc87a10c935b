import Base
import Crypto
import GoogleOAuth
import Storage
import Telemetry
import Testing

@testable import Scheduler

@Suite("The effect of a verdict on the client")
struct ClientRuleTests {
    @Test(
        "A fault of the client opens its breaker at once and postpones the grant by seconds",
        arguments: [
            "invalid_client", "deleted_client", "disabled_client", "invalid_scope", "restricted_client",
            "unsupported_grant_type",
        ]
    )
    func clientFault(code: String) throws {
        for state in [GrantState.active, .retrying, .suspended] {
            var grant = try Sample.grant(state: state, failures: 2)
            let before = grant
            var fixture = RulesFixture()
            let decision = fixture.refuse(.clientFault(code: code), on: &grant)
            #expect(decision.effect.breakerChange == .opened(.clientFault(code)))
            #expect(fixture.health.breaker.isOpen)
            #expect(grant.state == before.state && grant.reason == before.reason && grant.failures == 2)
            #expect((.seconds(1) ... .seconds(5)).contains(try #require(grant.dueAt) - start))
            #expect(decision.events.isEmpty)

            var other = try Sample.grant(2)
            #expect(fixture.refuse(.clientFault(code: code), on: &other).effect.breakerChange == nil, "reported once")
        }
    }

    @Test("A refused client secret that is not the one of the last success raises an alarm of its own")
    func refusedClientSecret() throws {
        let right = ClientSecretFingerprint(of: Secret("right"), clientID: "client")
        let wrong = ClientSecretFingerprint(of: Secret("wrong"), clientID: "client")
        let answers = [
            ("invalid_client", wrong, true), ("invalid_client", right, false), ("deleted_client", wrong, false),
        ]
        for (code, sent, raisesAlarm) in answers {
            var fixture = RulesFixture()
            var grant = try Sample.grant()
            let refusal = RefreshResult.Answer.failed(.clientFault(code: code), retryAfter: nil)
            #expect(fixture.decide(refusal, on: &grant, secretFingerprint: sent).alarm == nil, "without a success")
            _ = fixture.decide(try Sample.granted(), on: &grant, secretFingerprint: right)
            let decision = fixture.decide(refusal, on: &grant, secretFingerprint: sent)
            #expect(decision.alarm?.kind == (raisesAlarm ? .clientSecretsDiffer : nil), "\(code)")
            #expect(grant.state == .active)
        }
    }

    @Test("Twenty failures in a row over ten grants open the breaker", arguments: [10, 9])
    func endpointFailing(grants: Int) throws {
        let verdicts: [RefreshFailure] = [.noAnswer(code: "timeout"), .endpointFault(code: "http_500"), .notJSON]
        var fixture = RulesFixture()
        var changes: [Breaker.Change] = []
        for number in 0..<40 {
            var grant = try Sample.grant(Int64(number % grants))
            let decision = fixture.refuse(verdicts[number % 3], on: &grant)
            #expect(decision.outcome == .retrying)
            if let change = decision.effect.breakerChange {
                #expect(number == 19)
                changes.append(change)
            }
        }
        #expect(changes == (grants == 10 ? [.opened(.endpointFailing)] : []))
    }

    @Test("Requests that were not sent neither open a breaker nor count for or against the endpoint")
    func notSent() throws {
        var fixture = RulesFixture()
        for number in 0..<4 {
            var grant = try Sample.grant(Int64(number))
            _ = fixture.refuse(.endpointFault(code: "http_503"), on: &grant)
        }
        let before = fixture.health
        for number in 4..<100 {
            var grant = try Sample.grant(Int64(number))
            let decision = fixture.refuse(.notSent(code: "expired"), on: &grant)
            #expect(decision.effect.breakerChange == nil && decision.outcome == .unchanged)
        }
        #expect(fixture.health == before)
    }

    @Test(
        "An answer after a few failures in a row ends an outage if they lasted ten seconds; else it does not",
        arguments: [2, 5, 20],
        [2, 10]
    )
    func outageEnds(failures: Int, seconds: Int) throws {
        var fixture = RulesFixture()
        for number in 0..<failures {
            var grant = try Sample.grant(Int64(number))
            #expect(!fixture.refuse(.endpointFault(code: "http_503"), on: &grant).effect.endsOutage)
        }
        fixture.advance(by: .seconds(seconds))
        if fixture.health.breaker.isOpen {
            #expect(fixture.health.breaker.beginProbe(at: fixture.instant, deadline: .seconds(20)) == true)
        }
        var grant = try Sample.grant(100)
        let ends = failures >= 5 && seconds >= 10
        #expect(fixture.decide(try Sample.granted(at: fixture.now), on: &grant).effect.endsOutage == ends)
    }

    @Test("A grant that failed in an outage, and by chance after it, waits as after a first failure")
    func outageDoesNotCount() throws {
        let fault = RefreshFailure.endpointFault(code: "http_503")
        var fixture = RulesFixture()
        // A jitter of zero gives the longest wait.
        fixture.jitter = 0
        var grant = try Sample.grant(state: .retrying, failures: 2, failingSince: start)
        for number in 2...8 {
            var other = try Sample.grant(Int64(number))
            _ = fixture.refuse(fault, on: &other)
        }
        fixture.advance(by: .seconds(25))
        _ = fixture.refuse(fault, on: &grant)
        #expect(try #require(grant.dueAt) - fixture.now == .seconds(40), "the outage goes on: its time counts")
        var other = try Sample.grant(9)
        #expect(fixture.decide(try Sample.granted(at: fixture.now), on: &other).effect.endsOutage)

        fixture.advance(by: .seconds(1))
        _ = fixture.refuse(fault, on: &grant)
        #expect(try #require(grant.dueAt) - fixture.now == .seconds(10))
        fixture.advance(by: .seconds(10))
        _ = fixture.refuse(fault, on: &grant)
        #expect(try #require(grant.dueAt) - fixture.now == .seconds(20), "failures after the outage count again")

        var old = try Sample.grant(10, state: .retrying, failures: 9, failingSince: start - .seconds(7200))
        fixture.now = start - .seconds(3600)
        _ = fixture.refuse(fault, on: &old)
        #expect(try #require(old.dueAt) - fixture.now == .seconds(600), "an outage end in the future does not count")
    }

    @Test("Any answer about the grant ends the row of failures")
    func rowEnds() throws {
        let answers: [RefreshResult.Answer] = [
            try Sample.granted(), .failed(.invalidGrant, retryAfter: nil),
            .failed(.signInRequired(code: "invalid_rapt"), retryAfter: nil),
            .failed(.blocked(code: "policy_enforced"), retryAfter: nil),
        ]
        for answer in answers {
            var fixture = RulesFixture()
            for number in 0..<38 {
                var grant = try Sample.grant(Int64(number))
                if number == 19 {
                    _ = fixture.decide(answer, on: &grant)
                } else {
                    _ = fixture.refuse(.noAnswer(code: "timeout"), on: &grant)
                }
            }
            #expect(!fixture.health.breaker.isOpen)
        }
    }

    @Test("A probe that succeeds closes the breaker")
    func probe() throws {
        var fixture = RulesFixture()
        var grant = try Sample.grant()
        _ = fixture.refuse(.clientFault(code: "invalid_client"), on: &grant)
        fixture.advance(by: .seconds(2))
        let mayProbe = fixture.health.breaker.beginProbe(at: fixture.instant, deadline: .seconds(20))
        #expect(mayProbe)
        let decision = fixture.decide(try Sample.granted(at: fixture.now), on: &grant)
        #expect(decision.effect.breakerChange == .closed)
        #expect(!fixture.health.breaker.isOpen)
    }

    @Test("A client's fault of ten seconds has the grants that failed tried at once at its end", arguments: [9, 10])
    func clientFaultEnds(seconds: Int) throws {
        var fixture = RulesFixture()
        var grant = try Sample.grant()
        _ = fixture.refuse(.clientFault(code: "invalid_client"), on: &grant)
        fixture.advance(by: .seconds(seconds))
        let mayProbe = fixture.health.breaker.beginProbe(at: fixture.instant, deadline: .seconds(20))
        #expect(mayProbe)
        let decision = fixture.decide(try Sample.granted(at: fixture.now), on: &grant)
        #expect(decision.effect.breakerChange == .closed && decision.effect.endsOutage == (seconds == 10))
        #expect(fixture.health.outageEndedAt == (seconds == 10 ? fixture.now : nil))
    }

    @Test("A probe with a foreign token is followed by another within a second")
    func inconclusiveProbe() throws {
        var fixture = RulesFixture()
        var foreign = try Sample.grant(1, isProven: false)
        _ = fixture.refuse(.clientOrForeignToken(code: "unauthorized_client"), on: &foreign)
        fixture.advance(by: .seconds(1))
        var healthy = try Sample.grant(2)
        _ = fixture.decide(try Sample.granted(at: fixture.now), on: &healthy)
        _ = fixture.refuse(.clientFault(code: "invalid_client"), on: &healthy)
        fixture.advance(by: .seconds(2))
        let mayProbe = fixture.health.breaker.beginProbe(at: fixture.instant, deadline: .seconds(20))
        #expect(mayProbe)
        let decision = fixture.refuse(.clientOrForeignToken(code: "unauthorized_client"), on: &foreign)
        #expect(decision.outcome == .reauthRequired)
        #expect(fixture.health.breaker.permits(at: fixture.instant + .seconds(1)) == .probeDue)
    }

    @Test("Throttling halves the ceiling, pauses for Retry-After, and opens no breaker")
    func throttled() throws {
        var fixture = RulesFixture()
        var grant = try Sample.grant()
        let decision = fixture.refuse(.throttled(code: "http_429"), on: &grant, retryAfter: .seconds(40))
        #expect(decision.effect.limitsChanged)
        #expect(fixture.health.limits.cut?.ceiling == 100)
        #expect(fixture.health.limits.pausedUntil == fixture.instant + .seconds(40))
        #expect(!fixture.health.breaker.isOpen)
        #expect(!fixture.refuse(.throttled(code: "http_429"), on: &grant).effect.limitsChanged, "one sign, not two")
        fixture.advance(by: .seconds(41))
        #expect(fixture.refuse(.throttled(code: "http_429"), on: &grant).effect.limitsChanged)
        #expect(try #require(fixture.health.limits.cut).ceiling < 100)
    }
}

@Suite("A token that seems to belong to another client")
struct ForeignTokenTests {
    private let verdict = RefreshFailure.clientOrForeignToken(code: "unauthorized_client")

    @Test("While no grant of the client is proven, it is retried and an alarm is raised")
    func noGrantProven() throws {
        var fixture = RulesFixture()
        var grant = try Sample.grant(isProven: false)
        for _ in 0..<3 {
            let decision = fixture.refuse(verdict, on: &grant)
            #expect(decision.outcome == .retrying && decision.alarm?.kind == .clientUnproven)
            #expect(grant.state == .retrying && grant.reason == .clientMismatchUnconfirmed)
            #expect(!fixture.health.breaker.isOpen)
            fixture.advance(by: .seconds(60))
        }
    }

    @Test("If a proven grant succeeds after the refusal, its user must sign in again")
    func foreign() throws {
        var fixture = RulesFixture()
        var other = try Sample.grant(2)
        _ = fixture.decide(try Sample.granted(at: fixture.now), on: &other)
        fixture.advance(by: .seconds(10))

        var grant = try Sample.grant(isProven: false)
        let first = fixture.refuse(verdict, on: &grant)
        #expect(first.outcome == .retrying && first.alarm == nil, "the success came before")
        fixture.advance(by: .seconds(10))
        #expect(fixture.refuse(verdict, on: &grant).outcome == .retrying, "no success since")
        fixture.advance(by: .seconds(1))
        _ = fixture.decide(try Sample.granted(at: fixture.now), on: &other)
        fixture.advance(by: .seconds(10))
        let last = fixture.refuse(verdict, on: &grant)
        #expect(last.outcome == .reauthRequired)
        #expect(grant.state == .reauthRequired && grant.reason == .clientMismatch && grant.dueAt == nil)
        #expect(!fixture.health.breaker.isOpen)
    }

    @Test(
        "A success with another client secret than the refused worker's never ends a grant",
        arguments: [true, false]
    )
    func otherClientSecret(isProven: Bool) throws {
        let right = ClientSecretFingerprint(of: Secret("right"), clientID: "client")
        let wrong = ClientSecretFingerprint(of: Secret("wrong"), clientID: "client")
        for sent in [wrong, .none] {
            var fixture = RulesFixture()
            var other = try Sample.grant(2)
            var grant = try Sample.grant(isProven: isProven)
            for hour in 0..<30 {
                _ = fixture.decide(try Sample.granted(at: fixture.now), on: &other, secretFingerprint: right)
                fixture.advance(by: .seconds(10))
                let refusal = RefreshResult.Answer.failed(verdict, retryAfter: nil)
                let decision = fixture.decide(refusal, on: &grant, secretFingerprint: sent)
                #expect(decision.outcome == .retrying && decision.alarm?.kind == .clientSecretsDiffer, "hour \(hour)")
                #expect(grant.state == .retrying && grant.reason == .clientMismatchUnconfirmed)
                fixture.advance(by: .seconds(3590))
            }
            // A worker with the right secret takes the grant over: its token is foreign indeed.
            _ = fixture.decide(.failed(verdict, retryAfter: nil), on: &grant, secretFingerprint: right)
            fixture.advance(by: .seconds(86_400))
            _ = fixture.decide(try Sample.granted(at: fixture.now), on: &other, secretFingerprint: right)
            fixture.advance(by: .seconds(10))
            let last = fixture.decide(.failed(verdict, retryAfter: nil), on: &grant, secretFingerprint: right)
            #expect(last.outcome == .reauthRequired && grant.reason == .clientMismatch)
        }
    }

    @Test("From its second refusal on, the success of another grant is asked for, if the client ever had one")
    func needsHealthyGrant() throws {
        var fixture = RulesFixture()
        var unproven = try Sample.grant(isProven: false)
        for _ in 0..<2 {
            #expect(!fixture.refuse(verdict, on: &unproven).needsHealthyGrant, "no grant was ever refreshed")
            fixture.advance(by: .seconds(60))
        }
        var other = try Sample.grant(2)
        _ = fixture.decide(try Sample.granted(at: fixture.now), on: &other)
        var grant = try Sample.grant(3)
        fixture.advance(by: .seconds(60))
        #expect(!fixture.refuse(verdict, on: &grant).needsHealthyGrant, "one refusal only makes it wait")
        fixture.advance(by: .seconds(60))
        #expect(fixture.refuse(verdict, on: &grant).needsHealthyGrant)
    }

    @Test("A success from before the first refusal proves nothing, however long other failures have lasted")
    func successBeforeRefusal() throws {
        var fixture = RulesFixture()
        var grant = try Sample.grant(isProven: false)
        _ = fixture.refuse(.endpointFault(code: "http_503"), on: &grant)
        fixture.advance(by: .seconds(10))
        var other = try Sample.grant(2)
        _ = fixture.decide(try Sample.granted(at: fixture.now), on: &other)
        fixture.advance(by: .seconds(10))
        // From here on the client itself is refused, and no grant succeeds any more.
        for _ in 0..<5 {
            let decision = fixture.refuse(verdict, on: &grant)
            #expect(decision.outcome == .retrying)
            #expect(grant.state == .retrying)
            fixture.advance(by: .seconds(60))
        }
    }

    @Test("Twenty refusals of ten proven grants are the client's fault if none succeeds for a minute")
    func provenGrants() throws {
        for (grants, span) in [(10, 60), (9, 60), (10, 59)] {
            var fixture = RulesFixture()
            for number in 0..<19 {
                var grant = try Sample.grant(Int64(number % grants))
                #expect(fixture.refuse(verdict, on: &grant).effect.breakerChange == nil)
                #expect(grant.state == .retrying && grant.suspectedSince == fixture.now)
            }
            fixture.advance(by: .seconds(span))
            var grant = try Sample.grant(7)
            let change = fixture.refuse(verdict, on: &grant).effect.breakerChange
            #expect(change == (grants == 10 && span == 60 ? .opened(.clientFault("unauthorized_client")) : nil))
            guard change != nil else { continue }
            #expect(grant.state == .active, "the client's fault changes no grant")
        }
    }

    @Test("A single proven grant that gets it does not stop others, and has a day")
    func provenGrantAlone() throws {
        var fixture = RulesFixture()
        var grant = try Sample.grant()
        var other = try Sample.grant(2)
        _ = fixture.refuse(verdict, on: &grant)
        for hour in 1...24 {
            fixture.advance(by: .seconds(3599))
            _ = fixture.decide(try Sample.granted(at: fixture.now), on: &other)
            fixture.advance(by: .seconds(1))
            let decision = fixture.refuse(verdict, on: &grant)
            #expect(!fixture.health.breaker.isOpen, "hour \(hour)")
            guard hour == 24 else {
                #expect(decision.outcome == .retrying && decision.alarm?.kind == .grantRefused)
                #expect(grant.state == .retrying && grant.suspectedSince == start)
                continue
            }
            #expect(decision.outcome == .reauthRequired)
            #expect(grant.state == .reauthRequired && grant.reason == .clientMismatch)
        }
    }

    @Test("A suspect is not ended while no other grant succeeds, however long ago the suspicion began")
    func clientFailsSince() throws {
        var fixture = RulesFixture()
        var grant = try Sample.grant()
        var other = try Sample.grant(2)
        _ = fixture.refuse(verdict, on: &grant)
        fixture.advance(by: .seconds(60))
        _ = fixture.decide(try Sample.granted(at: fixture.now), on: &other)
        fixture.advance(by: .seconds(60))
        _ = fixture.refuse(verdict, on: &grant)
        for _ in 0..<48 {
            fixture.advance(by: .seconds(3600))
            #expect(fixture.refuse(verdict, on: &grant).outcome == .retrying)
        }
        fixture.advance(by: .seconds(3600))
        _ = fixture.decide(try Sample.granted(at: fixture.now), on: &other)
        fixture.advance(by: .seconds(60))
        #expect(fixture.refuse(verdict, on: &grant).outcome == .reauthRequired)
    }

    @Test("A suspect that succeeds is cleared")
    func cleared() throws {
        var fixture = RulesFixture()
        var grant = try Sample.grant()
        _ = fixture.refuse(verdict, on: &grant)
        #expect(grant.suspectedSince == start)
        fixture.advance(by: .seconds(5))
        _ = fixture.decide(try Sample.granted(at: fixture.now), on: &grant)
        #expect(grant.suspectedSince == nil)
    }
}

@Suite("An app that Google cannot verify")
struct AppNotAuthenticTests {
    @Test("A minute without a success opens the breaker, however few the grants are", arguments: [1, 30])
    func opens(grants: Int) throws {
        var fixture = RulesFixture()
        var refused = try (1...grants).map { try Sample.grant(Int64($0), isProven: $0 % 2 == 1) }
        for index in refused.indices {
            let decision = fixture.refuse(.appNotAuthentic, on: &refused[index])
            #expect(decision.outcome == .retrying && decision.alarm == nil && decision.effect.breakerChange == nil)
            #expect(refused[index].state == .retrying && refused[index].reason.rawValue == "app_not_authentic")
            #expect(refused[index].suspectedSince == nil, "the grant is not at fault")
        }
        fixture.advance(by: .milliseconds(59_999))
        let early = fixture.refuse(.appNotAuthentic, on: &refused[0])
        #expect(early.effect.breakerChange == nil)
        fixture.advance(by: .milliseconds(1))
        let last = fixture.refuse(.appNotAuthentic, on: &refused[0])
        #expect(last.effect.breakerChange == .opened(.clientFault("app_not_authentic")))
        #expect(last.outcome == .unchanged && refused[0].state == .retrying)
    }

    @Test("Requests that succeed in between neither open the breaker nor end a grant", arguments: [true, false])
    func gradual(isProven: Bool) throws {
        var fixture = RulesFixture()
        var grant = try Sample.grant(isProven: isProven)
        var other = try Sample.grant(2)
        for _ in 0..<500 {
            let decision = fixture.refuse(.appNotAuthentic, on: &grant)
            #expect(decision.outcome == .retrying && decision.effect.breakerChange == nil && decision.alarm == nil)
            fixture.advance(by: .seconds(300))
            _ = fixture.decide(try Sample.granted(at: fixture.now), on: &other)
        }
        #expect(grant.state == .retrying && grant.generation == 3)
    }

    @Test("A failed probe of any grant is followed by another, and one that succeeds has all grants tried at once")
    func probes() throws {
        var fixture = RulesFixture()
        var grants = [try Sample.grant(1), try Sample.grant(2, isProven: false)]
        _ = fixture.refuse(.appNotAuthentic, on: &grants[0])
        fixture.advance(by: .seconds(60))
        _ = fixture.refuse(.appNotAuthentic, on: &grants[0])
        for round in 0..<20 {
            fixture.advance(by: Breaker.maximumProbeDelay)
            let mayProbe = fixture.health.breaker.beginProbe(at: fixture.instant, deadline: .seconds(20))
            #expect(mayProbe, "round \(round)")
            let decision = fixture.refuse(.appNotAuthentic, on: &grants[round % 2])
            #expect(decision.outcome == .unchanged && decision.effect.breakerChange == nil, "reported once")
        }
        fixture.advance(by: Breaker.maximumProbeDelay)
        let mayProbe = fixture.health.breaker.beginProbe(at: fixture.instant, deadline: .seconds(20))
        #expect(mayProbe)
        let decision = fixture.decide(try Sample.granted(at: fixture.now), on: &grants[1])
        #expect(decision.effect.breakerChange == .closed && decision.effect.endsOutage)
        #expect(fixture.health.outageEndedAt == fixture.now)
        #expect(grants[1].state == .active && grants[1].isProven)
    }
}

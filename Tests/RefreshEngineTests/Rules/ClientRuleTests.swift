import Clocks
import GoogleOAuth
import Observability
import RefreshEngine
import Scheduler
import Store
import Testing

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
            var grant = try Sample.grant(state: state, attempts: 2)
            let before = grant
            var bench = Bench()
            let decision = bench.refuse(.clientFault(code: code), on: &grant)
            #expect(decision.breakerChange == .opened(.clientFault(code)))
            #expect(bench.health.breaker.isOpen)
            #expect(grant.state == before.state && grant.reason == before.reason && grant.attempts == 2)
            #expect((.seconds(1) ... .seconds(5)).contains(try #require(grant.dueAt) - start))
            #expect(decision.events.isEmpty)

            var other = try Sample.grant(2)
            #expect(bench.refuse(.clientFault(code: code), on: &other).breakerChange == nil, "reported once")
        }
    }

    @Test("Twenty failures in a row over ten grants open the breaker", arguments: [10, 9])
    func endpointFailing(grants: Int) throws {
        let verdicts: [RefreshVerdict] = [.noAnswer(code: "timeout"), .endpointFault(code: "http_500"), .notJSON]
        var bench = Bench()
        var changes: [Breaker.Change] = []
        for number in 0..<40 {
            var grant = try Sample.grant(Int64(number % grants))
            let decision = bench.refuse(verdicts[number % 3], on: &grant)
            #expect(decision.outcome == .retrying)
            if let change = decision.breakerChange {
                #expect(number == 19)
                changes.append(change)
            }
        }
        #expect(changes == (grants == 10 ? [.opened(.endpointFailing)] : []))
    }

    @Test("Requests that were not sent neither open a breaker nor count for or against the endpoint")
    func notSent() throws {
        var bench = Bench()
        for number in 0..<4 {
            var grant = try Sample.grant(Int64(number))
            _ = bench.refuse(.endpointFault(code: "http_503"), on: &grant)
        }
        let before = bench.health
        for number in 4..<100 {
            var grant = try Sample.grant(Int64(number))
            let decision = bench.refuse(.notSent(code: "expired"), on: &grant)
            #expect(decision.breakerChange == nil && decision.outcome == .unchanged)
        }
        #expect(bench.health == before)
    }

    @Test(
        "An answer after a few failures in a row ends an outage if they lasted ten seconds; else it does not",
        arguments: [2, 5, 20],
        [2, 10]
    )
    func outageEnds(failures: Int, seconds: Int) throws {
        var bench = Bench()
        for number in 0..<failures {
            var grant = try Sample.grant(Int64(number))
            #expect(!bench.refuse(.endpointFault(code: "http_503"), on: &grant).endsOutage)
        }
        bench.advance(by: .seconds(seconds))
        if bench.health.breaker.isOpen {
            #expect(bench.health.breaker.beginProbe(at: bench.instant, deadline: .seconds(20)) == true)
        }
        var grant = try Sample.grant(100)
        let ends = failures >= 5 && seconds >= 10
        #expect(bench.decide(try Sample.granted(at: bench.now), on: &grant).endsOutage == ends)
    }

    @Test("A grant that failed in an outage, and by chance after it, waits as after a first failure")
    func outageDoesNotCount() throws {
        let fault = RefreshVerdict.endpointFault(code: "http_503")
        var bench = Bench()
        // A unit of zero gives the longest wait.
        bench.unit = 0
        var grant = try Sample.grant(state: .retrying, attempts: 2, failingSince: start)
        for number in 2...8 {
            var other = try Sample.grant(Int64(number))
            _ = bench.refuse(fault, on: &other)
        }
        bench.advance(by: .seconds(25))
        _ = bench.refuse(fault, on: &grant)
        #expect(try #require(grant.dueAt) - bench.now == .seconds(40), "the outage goes on: its time counts")
        var other = try Sample.grant(9)
        #expect(bench.decide(try Sample.granted(at: bench.now), on: &other).endsOutage)

        bench.advance(by: .seconds(1))
        _ = bench.refuse(fault, on: &grant)
        #expect(try #require(grant.dueAt) - bench.now == .seconds(10))
        bench.advance(by: .seconds(10))
        _ = bench.refuse(fault, on: &grant)
        #expect(try #require(grant.dueAt) - bench.now == .seconds(20), "failures after the outage count again")

        var old = try Sample.grant(10, state: .retrying, attempts: 9, failingSince: start - .seconds(7200))
        bench.now = start - .seconds(3600)
        _ = bench.refuse(fault, on: &old)
        #expect(try #require(old.dueAt) - bench.now == .seconds(600), "an outage end in the future does not count")
    }

    @Test("Any answer about the grant ends the row of failures")
    func rowEnds() throws {
        let answers: [RefreshResult.Answer] = [
            try Sample.granted(), .refused(.invalidGrant, retryAfter: nil),
            .refused(.signInRequired(code: "invalid_rapt"), retryAfter: nil),
            .refused(.blocked(code: "policy_enforced"), retryAfter: nil),
        ]
        for answer in answers {
            var bench = Bench()
            for number in 0..<38 {
                var grant = try Sample.grant(Int64(number))
                if number == 19 {
                    _ = bench.decide(answer, on: &grant)
                } else {
                    _ = bench.refuse(.noAnswer(code: "timeout"), on: &grant)
                }
            }
            #expect(!bench.health.breaker.isOpen)
        }
    }

    @Test("A probe that succeeds closes the breaker")
    func probe() throws {
        var bench = Bench()
        var grant = try Sample.grant()
        _ = bench.refuse(.clientFault(code: "invalid_client"), on: &grant)
        bench.advance(by: .seconds(2))
        let mayProbe = bench.health.breaker.beginProbe(at: bench.instant, deadline: .seconds(20))
        #expect(mayProbe)
        let decision = bench.decide(try Sample.granted(at: bench.now), on: &grant)
        #expect(decision.breakerChange == .closed)
        #expect(!bench.health.breaker.isOpen)
    }

    @Test("Throttling halves the ceiling, pauses for Retry-After, and opens no breaker")
    func throttled() throws {
        var bench = Bench()
        var grant = try Sample.grant()
        let decision = bench.refuse(.throttled(code: "http_429"), on: &grant, retryAfter: .seconds(40))
        #expect(decision.limitsChanged)
        #expect(bench.health.limits.cut?.ceiling == 100)
        #expect(bench.health.limits.pausedUntil == bench.instant + .seconds(40))
        #expect(!bench.health.breaker.isOpen)
        #expect(!bench.refuse(.throttled(code: "http_429"), on: &grant).limitsChanged, "one sign, not two")
        bench.advance(by: .seconds(41))
        #expect(bench.refuse(.throttled(code: "http_429"), on: &grant).limitsChanged)
        #expect(try #require(bench.health.limits.cut).ceiling < 100)
    }
}

@Suite("A token that seems to belong to another client")
struct ForeignTokenTests {
    private let verdict = RefreshVerdict.clientOrForeignToken(code: "unauthorized_client")

    @Test("While no grant of the client is proven, it is retried and an alarm is raised")
    func noGrantProven() throws {
        var bench = Bench()
        var grant = try Sample.grant(isProven: false)
        for _ in 0..<3 {
            let decision = bench.refuse(verdict, on: &grant)
            #expect(decision.outcome == .retrying && decision.alarm?.kind == .clientUnproven)
            #expect(grant.state == .retrying && grant.reason == .clientMismatchUnconfirmed)
            #expect(!bench.health.breaker.isOpen)
            bench.advance(by: .seconds(60))
        }
    }

    @Test("If a proven grant succeeds after the refusal, its user must sign in again")
    func foreign() throws {
        var bench = Bench()
        var other = try Sample.grant(2)
        _ = bench.decide(try Sample.granted(at: bench.now), on: &other)
        bench.advance(by: .seconds(10))

        var grant = try Sample.grant(isProven: false)
        let first = bench.refuse(verdict, on: &grant)
        #expect(first.outcome == .retrying && first.alarm == nil, "the success came before")
        bench.advance(by: .seconds(10))
        #expect(bench.refuse(verdict, on: &grant).outcome == .retrying, "no success since")
        bench.advance(by: .seconds(1))
        _ = bench.decide(try Sample.granted(at: bench.now), on: &other)
        bench.advance(by: .seconds(10))
        let last = bench.refuse(verdict, on: &grant)
        #expect(last.outcome == .reauthRequired)
        #expect(grant.state == .reauthRequired && grant.reason == .clientMismatch && grant.dueAt == nil)
        #expect(!bench.health.breaker.isOpen)
    }

    @Test("A success from before the first refusal proves nothing, however long other failures have lasted")
    func successBeforeRefusal() throws {
        var bench = Bench()
        var grant = try Sample.grant(isProven: false)
        _ = bench.refuse(.endpointFault(code: "http_503"), on: &grant)
        bench.advance(by: .seconds(10))
        var other = try Sample.grant(2)
        _ = bench.decide(try Sample.granted(at: bench.now), on: &other)
        bench.advance(by: .seconds(10))
        // From here on the client itself is refused, and no grant succeeds any more.
        for _ in 0..<5 {
            let decision = bench.refuse(verdict, on: &grant)
            #expect(decision.outcome == .retrying)
            #expect(grant.state == .retrying)
            bench.advance(by: .seconds(60))
        }
    }

    @Test("Twenty refusals of ten proven grants are the client's fault if none succeeds for a minute")
    func provenGrants() throws {
        for (grants, span) in [(10, 60), (9, 60), (10, 59)] {
            var bench = Bench()
            for number in 0..<19 {
                var grant = try Sample.grant(Int64(number % grants))
                #expect(bench.refuse(verdict, on: &grant).breakerChange == nil)
                #expect(grant.state == .retrying && grant.suspectedSince == bench.now)
            }
            bench.advance(by: .seconds(span))
            var grant = try Sample.grant(7)
            let change = bench.refuse(verdict, on: &grant).breakerChange
            #expect(change == (grants == 10 && span == 60 ? .opened(.clientFault("unauthorized_client")) : nil))
            guard change != nil else { continue }
            #expect(grant.state == .active, "the client's fault changes no grant")
        }
    }

    @Test("A single proven grant that gets it does not stop others, and has a day")
    func provenGrantAlone() throws {
        var bench = Bench()
        var grant = try Sample.grant()
        var other = try Sample.grant(2)
        _ = bench.refuse(verdict, on: &grant)
        for hour in 1...24 {
            bench.advance(by: .seconds(3599))
            _ = bench.decide(try Sample.granted(at: bench.now), on: &other)
            bench.advance(by: .seconds(1))
            let decision = bench.refuse(verdict, on: &grant)
            #expect(!bench.health.breaker.isOpen, "hour \(hour)")
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
        var bench = Bench()
        var grant = try Sample.grant()
        var other = try Sample.grant(2)
        _ = bench.refuse(verdict, on: &grant)
        bench.advance(by: .seconds(60))
        _ = bench.decide(try Sample.granted(at: bench.now), on: &other)
        bench.advance(by: .seconds(60))
        _ = bench.refuse(verdict, on: &grant)
        for _ in 0..<48 {
            bench.advance(by: .seconds(3600))
            #expect(bench.refuse(verdict, on: &grant).outcome == .retrying)
        }
        bench.advance(by: .seconds(3600))
        _ = bench.decide(try Sample.granted(at: bench.now), on: &other)
        bench.advance(by: .seconds(60))
        #expect(bench.refuse(verdict, on: &grant).outcome == .reauthRequired)
    }

    @Test("A suspect that succeeds is cleared")
    func cleared() throws {
        var bench = Bench()
        var grant = try Sample.grant()
        _ = bench.refuse(verdict, on: &grant)
        #expect(grant.suspectedSince == start)
        bench.advance(by: .seconds(5))
        _ = bench.decide(try Sample.granted(at: bench.now), on: &grant)
        #expect(grant.suspectedSince == nil)
    }
}

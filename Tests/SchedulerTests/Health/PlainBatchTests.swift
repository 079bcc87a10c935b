import Base
import GoogleOAuth
import Telemetry
import Testing

@testable import Scheduler
@testable import Storage

@Suite("A batch is stored without the health of its clients")
struct PlainBatchTests {
    private let instant = BootInstant(milliseconds: 5_000_000)
    private let now = start + .seconds(10)

    private func refresh(
        _ number: Int64,
        state: GrantState = .active,
        needsHealth: Bool = false
    ) throws -> Refresh {
        var grant = try Sample.grant(number, state: state)
        grant.setLease(Lease(owner: "worker", claim: 7, epoch: "boot", until: instant + .seconds(30)))
        return Refresh(
            of: grant,
            isForced: false,
            needsHealth: needsHealth,
            leaseEnd: instant + .seconds(30)
        )
    }

    private func decide(
        _ batch: [(Refresh, RefreshResult.Answer)],
        readAgo span: Duration? = .seconds(1)
    ) -> [StoredDecision]? {
        var batches = PlainBatches()
        if let span { batches.healthWasRead(of: ["client"], at: instant - span) }
        for (refresh, answer) in batch { refresh.didRead(RefreshResult(claim: refresh.claim, answer: answer)) }
        return batches.decide(batch.map(\.0), by: RefreshRules(maxRate: 200), at: now, instant: instant)
    }

    @Test("if all are successes of active grants; each decision is that of the rules")
    func successes() throws {
        let batch = try (1...3).map { (try refresh($0), try Sample.granted(at: now)) }
        let decisions = try #require(decide(batch))
        #expect(decisions.map(\.decision.grant?.id.rawValue) == [1, 2, 3])
        for stored in decisions {
            let grant = try #require(stored.decision.grant)
            #expect(grant.lease == nil)
            #expect(grant.lastSuccessAt == now)
            #expect(grant.state == .active)
            #expect(stored.decision.outcome == .refreshed)
            #expect(stored.isPlain)
        }
    }

    @Test("unless one answer is not a success, or changes more than tokens: their order counts")
    func others() throws {
        let success = (try refresh(1), try Sample.granted(at: now))
        let answers: [RefreshResult.Answer] = [
            .failed(.invalidGrant, retryAfter: nil), .failed(.noAnswer(code: "timeout"), retryAfter: nil),
            .flawed(code: "no_expiry", rotated: nil), .withoutRefreshToken,
            try Sample.granted(at: now, scope: "email"),
            try Sample.granted(at: now, rotated: try Sample.refreshToken("rotated")),
        ]
        for answer in answers {
            let other = (try refresh(2), answer)
            #expect(decide([success, other]) == nil, "\(answer)")
        }
        let recovered = (try refresh(2, state: .retrying), try Sample.granted(at: now))
        #expect(decide([success, recovered]) == nil)
        #expect(decide([success, success]) == nil, "two results of one grant")
    }

    @Test("unless the breaker was not closed at the claim, or the health was not read lately")
    func stale() throws {
        let answer = try Sample.granted(at: now)
        #expect(decide([(try refresh(1, needsHealth: true), answer)]) == nil)
        #expect(decide([(try refresh(1), answer)], readAgo: nil) == nil)
        #expect(decide([(try refresh(1), answer)], readAgo: PlainBatches.maximumTimeWithoutHealth) == nil)
        #expect(decide([(try refresh(1), answer)], readAgo: .milliseconds(1_999)) != nil)
    }

    @Test("A refresh that was claimed while the endpoint fails or the breaker is not closed needs the health")
    func claimedWhileFailing() throws {
        var fixture = StateFixture()
        let before = try fixture.send(1...1)
        #expect(before.map(\.needsHealth) == [true], "the health was never read")
        fixture.state.updateHealth(ClientHealth(epoch: "boot"), of: "client")
        #expect(try fixture.send(2...2).map(\.needsHealth) == [false])
        var health = ClientHealth(epoch: "boot")
        _ = health.breaker.endpointFailed(grant: 1, at: fixture.conditions.instant, jitter: 0)
        fixture.state.updateHealth(health, of: "client")
        #expect(try fixture.send(3...3).map(\.needsHealth) == [true])
        fixture.state.updateHealth(fixture.openBreaker(), of: "client")
        #expect(try fixture.send(4...4).map(\.needsHealth) == [true])
    }

    @Test("A success without the health leaves the worker's view of its client as it is")
    func finished() throws {
        var fixture = StateFixture()
        fixture.state.updateHealth(fixture.openBreaker(), of: "client")
        let sent = try fixture.send(1...1)
        _ = try fixture.commit(sent, plain: sent.count)
        #expect(fixture.state.gates["client"]?.health.breaker.isOpen == true)
    }
}

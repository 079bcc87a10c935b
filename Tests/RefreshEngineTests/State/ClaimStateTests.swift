import Clocks
import Scheduler
import Store
import Testing

@testable import RefreshEngine

@Suite("Claims, and events that arrive while one is under way")
struct ClaimStateTests {
    @Test("Claimed grants are sent, and those that another worker has are not")
    func claimed() throws {
        var bench = StateBench()
        let request = bench.state.reserve([1, 2, 3].map { GrantID(rawValue: $0) }, dueBy: bench.conditions.now).claim
        let grants = try [1, 3].map { try bench.leased(GrantID(rawValue: $0)) }
        let (outcome, actions) = bench.state.claimed(grants, for: request, leasesEnd: bench.conditions.instant)
        #expect(actions.sent.map(\.grant.id.rawValue) == [1, 3])
        #expect(outcome == RefreshEngineState.ClaimOutcome(lost: 1))
        #expect(actions.completions.count == 1 && actions.completions.allSatisfy(\.isElsewhere))
        #expect(bench.state.slots.count == 2)
    }

    @Test("A claim without losses does not wake the loop that waits for it")
    func quiet() throws {
        var bench = StateBench()
        let request = bench.state.reserve([GrantID(rawValue: 1)], dueBy: nil).claim
        let actions = try bench.claimed(request)
        #expect(!actions.wakesLoop)
    }

    @Test("An answer that arrives while a claim is under way frees its own slot only")
    func answerDuringClaim() throws {
        var bench = StateBench(mostInFlight: 4)
        let first = try bench.send(1...2)
        bench.queue(3...6)
        let second = try bench.beginClaim()
        #expect(second.ids.map(\.rawValue) == [3, 4])

        let actions = try bench.commit([first[0]])
        #expect(actions.wakesLoop && actions.completions.allSatisfy(\.isCommitted))
        #expect(Set(bench.state.slots.keys.map(\.rawValue)) == [2, 3, 4], "reserved slots count as in flight")
        #expect(bench.firstStep().claimed == [5])
        let sent = try bench.claimed(second).sent
        #expect(sent.count == 2)
    }

    @Test("An answer that opens the breaker while a claim is under way stops the next claim of the round")
    func breakerDuringClaim() throws {
        var bench = StateBench(maxRate: 2_000)
        let first = try bench.send(1...1)
        bench.queue(101...350)
        var round = bench.state.beginRound()
        #expect(bench.state.nextStep(of: &round, under: bench.conditions).claimed?.count == 100)
        _ = try bench.commit(first, health: bench.openBreaker())
        #expect(bench.state.nextStep(of: &round, under: bench.conditions).wait != nil)
    }

    @Test("A scan while a claim is under way does not queue its grants again")
    func scanDuringClaim() throws {
        var bench = StateBench()
        bench.queue(1...3)
        let request = try bench.beginClaim()
        bench.queue(1...4)
        _ = try bench.claimed(request)
        bench.queue(1...4)
        #expect(bench.firstStep().claimed == [4])
    }

    @Test("A stop while a claim is under way releases all its leases unused")
    func stopDuringClaim() throws {
        var bench = StateBench()
        bench.queue(1...3)
        let request = try bench.beginClaim()
        #expect(!bench.state.beginStop().reportsIdle)
        let actions = try bench.claimed(request)
        #expect(actions.sent.isEmpty && actions.released == [1, 2, 3])
        let last = bench.state.released(request.ids, as: .abandoned)
        #expect(last.completions.allSatisfy(\.isAbandoned) && last.reportsIdle)
    }

    @Test("A claim that returns after the stop has abandoned its slots releases the leases, and ends no slot twice")
    func abandonedDuringClaim() throws {
        var bench = StateBench()
        bench.queue(1...3)
        let request = try bench.beginClaim()
        _ = bench.state.beginStop()
        #expect(bench.state.abandonRefreshes().reportsIdle)
        let late = try bench.claimed(request)
        #expect(late.released == [1, 2, 3])
        #expect(bench.state.released(request.ids, as: .abandoned).isEmpty)
    }

    @Test("A grant that ended between its selection and its lease is not sent")
    func ended() throws {
        var bench = StateBench()
        let request = bench.state.reserve([GrantID(rawValue: 1)], dueBy: nil).claim
        let grant = try bench.leased(GrantID(rawValue: 1), state: .disconnected)
        let actions = bench.state.claimed([grant], for: request, leasesEnd: bench.conditions.instant).actions
        #expect(actions.sent.isEmpty && actions.released == [1])
    }

    @Test("A grant that another worker refreshed since a caller read it counts as done")
    func seen() throws {
        var bench = StateBench()
        let seen = try Sample.grant(1, lastAttemptAt: bench.conditions.now + .seconds(-60))
        let request = bench.state.reserve([seen.id], dueBy: nil, seen: seen).claim
        let actions = try bench.claimed(request)
        #expect(actions.sent.isEmpty && actions.released == [1])
        let end = actions.compactMap { if case .release(_, let end) = $0 { end } else { nil } }
        #expect(end.count == 1 && end.allSatisfy(\.isElsewhere))
    }

    @Test("A failed claim abandons its grants and pauses claims, each time longer; a success ends the pause")
    func failed() throws {
        var bench = StateBench()
        var pauses: [Duration] = []
        for _ in 0..<2 {
            bench.queue(1...3)
            let request = try bench.beginClaim()
            let failure = bench.state.claimFailed(
                request,
                concernsOneRow: false,
                at: bench.conditions.instant,
                unit: 0
            )
            guard case .abandon(let outcome, let actions) = failure else {
                Issue.record("the claim is repeated")
                return
            }
            #expect(outcome == RefreshEngineState.ClaimOutcome(lost: 3, hasFailed: true))
            #expect(actions.completions.count == 3 && actions.completions.allSatisfy(\.isAbandoned))
            bench.queue(1...3)
            let pause = try #require(bench.firstStep().wait)
            pauses.append(pause)
            bench.pass(pause)
            let retry = try bench.beginClaim()
            _ = bench.state.abandon(retry)
        }
        #expect(pauses[0] < pauses[1])
        bench.queue(1...3)
        let request = try bench.beginClaim()
        _ = try bench.claimed(request)
        #expect(bench.state.claimPause(under: bench.conditions) == nil)
    }

    @Test("After a failure that may concern one row, each grant is claimed alone, and only that one is given up")
    func oneRow() throws {
        var bench = StateBench()
        let request = bench.state.reserve([1, 2].map { GrantID(rawValue: $0) }, dueBy: nil).claim
        let instant = bench.conditions.instant
        let failure = bench.state.claimFailed(request, concernsOneRow: true, at: instant, unit: 0)
        guard case .claimEach(let requests) = failure else {
            Issue.record("the batch is given up")
            return
        }
        #expect(requests.map { $0.ids.map(\.rawValue) } == [[1], [2]])
        let alone = bench.state.claimFailed(requests[0], concernsOneRow: true, at: instant, unit: 0)
        guard case .abandon(let outcome, _) = alone else {
            Issue.record("the claim of one grant is repeated")
            return
        }
        #expect(!outcome.hasFailed && bench.state.claimPause(under: bench.conditions) == nil)
        let sent = try bench.claimed(requests[1]).sent
        #expect(sent.count == 1)
    }
}

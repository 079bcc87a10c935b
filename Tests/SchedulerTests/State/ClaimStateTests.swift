import Base
import Scheduler
import Storage
import Testing

@testable import Scheduler

@Suite("Claims, and events that arrive while one is under way")
struct ClaimStateTests {
    @Test("Claimed grants are sent, and those that another worker has are not")
    func claimed() throws {
        var fixture = StateFixture()
        let request = fixture.state.reserve([1, 2, 3].map { GrantID(rawValue: $0) }, dueBy: fixture.conditions.now)
            .request
        let grants = try [1, 3].map { try fixture.leased(GrantID(rawValue: $0)) }
        let (lost, actions) = fixture.state.claimed(grants, for: request, leasesEnd: fixture.conditions.instant)
        #expect(actions.sent.map(\.grant.id.rawValue) == [1, 3])
        #expect(lost == 1)
        #expect(actions.completions.count == 1 && actions.completions.allSatisfy(\.isElsewhere))
        #expect(fixture.state.slots.count == 2)
    }

    @Test("A claim without losses does not wake the loop that waits for it")
    func quiet() throws {
        var fixture = StateFixture()
        let request = fixture.state.reserve([GrantID(rawValue: 1)], dueBy: nil).request
        let actions = try fixture.claimed(request)
        #expect(!actions.wakesLoop)
    }

    @Test("An answer that arrives while a claim is under way frees its own slot only")
    func answerDuringClaim() throws {
        var fixture = StateFixture(maximumInFlight: 4)
        let first = try fixture.send(1...2)
        fixture.queue(3...6)
        let second = try fixture.beginClaim()
        #expect(second.ids.map(\.rawValue) == [3, 4])

        let actions = try fixture.commit([first[0]])
        #expect(actions.wakesLoop && actions.completions.allSatisfy(\.isCommitted))
        #expect(Set(fixture.state.slots.keys.map(\.rawValue)) == [2, 3, 4], "reserved slots count as in flight")
        fixture.passGathering()
        #expect(fixture.firstStep().claimed == [5])
        let sent = try fixture.claimed(second).sent
        #expect(sent.count == 2)
    }

    @Test("An answer that opens the breaker while a claim is under way stops the next claim of the round")
    func breakerDuringClaim() throws {
        var fixture = StateFixture(maxRate: 2_000)
        let first = try fixture.send(1...1)
        fixture.queue(101...350)
        var round = fixture.state.beginRound()
        #expect(fixture.state.nextStep(of: &round, under: fixture.conditions).claimed?.count == 100)
        _ = try fixture.commit(first, health: fixture.openBreaker())
        #expect(fixture.state.nextStep(of: &round, under: fixture.conditions).wait != nil)
    }

    @Test("The health of a batch counts even if its first results were stored without it")
    func healthOfMixedBatch() throws {
        var fixture = StateFixture(maxRate: 2_000)
        let sent = try fixture.send(1...2)
        _ = try fixture.commit(sent, health: fixture.openBreaker(), plain: 1)
        fixture.queue(101...350)
        #expect(fixture.firstStep().wait != nil)
    }

    @Test("A scan while a claim is under way does not queue its grants again")
    func scanDuringClaim() throws {
        var fixture = StateFixture()
        fixture.queue(1...3)
        let request = try fixture.beginClaim()
        fixture.queue(1...4)
        _ = try fixture.claimed(request)
        fixture.queue(1...4)
        fixture.passGathering()
        #expect(fixture.firstStep().claimed == [4])
    }

    @Test("A stop while a claim is under way releases all its leases unused")
    func stopDuringClaim() throws {
        var fixture = StateFixture()
        fixture.queue(1...3)
        let request = try fixture.beginClaim()
        #expect(!fixture.state.beginStop().reportsIdle)
        let actions = try fixture.claimed(request)
        #expect(actions.sent.isEmpty && actions.released == [1, 2, 3])
        let last = fixture.state.freeSlots(of: request.ids, as: .abandoned)
        #expect(last.completions.count == 3)
        #expect(last.completions.allSatisfy(\.isAbandoned) && last.reportsIdle)
    }

    @Test("A claim that returns after the stop has abandoned its slots releases the leases, and ends no slot twice")
    func abandonedDuringClaim() throws {
        var fixture = StateFixture()
        fixture.queue(1...3)
        let request = try fixture.beginClaim()
        _ = fixture.state.beginStop()
        #expect(fixture.state.abandonRefreshes().reportsIdle)
        let late = try fixture.claimed(request)
        #expect(late.released == [1, 2, 3])
        #expect(fixture.state.freeSlots(of: request.ids, as: .abandoned).isEmpty)
    }

    @Test("A grant that ended between its selection and its lease is not sent")
    func ended() throws {
        var fixture = StateFixture()
        let request = fixture.state.reserve([GrantID(rawValue: 1)], dueBy: nil).request
        let grant = try fixture.leased(GrantID(rawValue: 1), state: .disconnected)
        let actions = fixture.state.claimed([grant], for: request, leasesEnd: fixture.conditions.instant).actions
        #expect(actions.sent.isEmpty && actions.released == [1])
    }

    @Test("A grant that another worker refreshed since a caller read it counts as done")
    func seen() throws {
        var fixture = StateFixture()
        let seen = try Sample.grant(1, lastAttemptAt: fixture.conditions.now + .seconds(-60))
        let request = fixture.state.reserve([seen.id], dueBy: nil, seen: seen).request
        let actions = try fixture.claimed(request)
        #expect(actions.sent.isEmpty && actions.released == [1])
        let end = actions.compactMap { if case .release(_, let end) = $0 { end } else { nil } }
        #expect(end.count == 1 && end.allSatisfy(\.isElsewhere))
    }

    @Test("A failed claim abandons its grants and pauses claims, each time longer; a success ends the pause")
    func failed() throws {
        var fixture = StateFixture()
        var pauses: [Duration] = []
        for _ in 0..<2 {
            fixture.queue(1...3)
            let request = try fixture.beginClaim()
            let instant = fixture.conditions.instant
            let each = fixture.state.claimFailed(request, concernsOneRow: false, at: instant, jitter: 0)
            #expect(each.isEmpty, "the claim is not repeated")
            let actions = fixture.state.freeSlots(of: request.ids, as: .abandoned)
            #expect(actions.completions.count == 3 && actions.completions.allSatisfy(\.isAbandoned))
            fixture.queue(1...3)
            let pause = try #require(fixture.firstStep().wait)
            pauses.append(pause)
            fixture.pass(max(pause, RefreshEngineState.gatheringTime))
            let retry = try fixture.beginClaim()
            _ = fixture.state.freeSlots(of: retry.ids, as: .abandoned)
            fixture.passGathering()
        }
        #expect(pauses[0] < pauses[1])
        fixture.queue(1...3)
        let request = try fixture.beginClaim()
        _ = try fixture.claimed(request)
        #expect(fixture.state.claimPause(under: fixture.conditions) == nil)
    }

    @Test("After a failure that may concern one row, each grant is claimed alone, and only that one is given up")
    func oneRow() throws {
        var fixture = StateFixture()
        let request = fixture.state.reserve([1, 2].map { GrantID(rawValue: $0) }, dueBy: nil).request
        let instant = fixture.conditions.instant
        let requests = fixture.state.claimFailed(request, concernsOneRow: true, at: instant, jitter: 0)
        #expect(requests.map { $0.ids.map(\.rawValue) } == [[1], [2]])
        let alone = fixture.state.claimFailed(requests[0], concernsOneRow: true, at: instant, jitter: 0)
        #expect(alone.isEmpty, "the claim of one grant is not repeated")
        #expect(fixture.state.claimPause(under: fixture.conditions) == nil)
        let sent = try fixture.claimed(requests[1]).sent
        #expect(sent.count == 1)
    }

    @Test("Revocations above a quarter of the slots wait, and do not hide a refresh of the same grant")
    func deferred() throws {
        var fixture = StateFixture(maximumInFlight: 8)
        let dueAt = fixture.conditions.now + .seconds(-1)
        fixture.queue(1...4)
        let request = try fixture.beginClaim()
        let grants = try request.ids.map { id in
            var grant = try Sample.grant(
                id.rawValue,
                state: .disconnected,
                dueAt: dueAt,
                revocationAskedAt: fixture.conditions.now
            )
            grant.setLease(try fixture.leased(id).lease)
            return grant
        }
        let (lost, actions) = fixture.state.claimed(grants, for: request, leasesEnd: fixture.conditions.instant)
        #expect(lost == 2 && actions.sent.map(\.grant.id.rawValue) == [1, 2] && actions.released == [3, 4])
        fixture.queue(1...4)
        #expect(fixture.firstStep().isEnd, "their leases are being released")
        _ = fixture.state.freeSlots(of: [3, 4].map { GrantID(rawValue: $0) }, as: .deferred)
        fixture.queue(1...4)
        #expect(fixture.firstStep().isEnd, "two are in flight")
        _ = try fixture.commit([actions.sent[0]])
        #expect(fixture.firstStep().claimed == [3])
        _ = try fixture.commit([actions.sent[1]])
        fixture.queue(5...5)
        #expect(fixture.firstStep().wait == RefreshEngineState.gatheringTime, "the pace is for refreshes that gather")
        fixture.passGathering()
        #expect(fixture.firstStep().claimed == [5])

        // The user has connected again, so it is due at another time.
        fixture.pass(.seconds(10))
        fixture.queue(4...4)
        #expect(fixture.firstStep().claimed == [4])
    }
}

import Base
import Scheduler
import Storage
import Testing

@testable import Scheduler

@Suite("Refreshes that end, and the stop")
struct FinishStateTests {
    @Test("The second request of a refresh that was challenged counts in the pace")
    func secondRequests() throws {
        var fixture = StateFixture(maxRate: 20)
        fixture.state.addGate(of: "client")
        let refreshes = try fixture.send(1...3)
        for refresh in refreshes.prefix(2) { refresh.willAnswerChallenge() }
        #expect(fixture.availableRequests(of: "client") == 4)
        _ = try fixture.commit(refreshes)
        #expect(fixture.availableRequests(of: "client") == 2)
    }

    @Test("A committed result is logged before its callers wake, and frees the slot")
    func committed() throws {
        var fixture = StateFixture()
        let sent = try fixture.send(1...2)
        let actions = try fixture.commit(sent)
        #expect(fixture.state.slots.isEmpty && actions.wakesLoop && actions.reportsIdle)
        let order = actions.compactMap { action in
            switch action {
            case .logRefreshes(let refreshes): "logged \(refreshes.map(\.grant.id.rawValue))"
            case .complete: "completed"
            default: nil
            }
        }
        #expect(order == ["logged [1, 2]", "completed", "completed"])
    }

    @Test("The next due time comes into the window if it is near")
    func nextDue() throws {
        var fixture = StateFixture()
        _ = try fixture.commit(try fixture.send(1...1), dueIn: .seconds(3))
        _ = try fixture.commit(try fixture.send(2...2), dueIn: .seconds(3000))
        #expect(fixture.state.window.count == 1)
    }

    @Test("A request that was not sent keeps its slot until its lease is released")
    func notSent() throws {
        var fixture = StateFixture()
        let actions = fixture.withhold(try fixture.send(1...1))
        #expect(actions.released == [1] && actions.completions.isEmpty && fixture.state.slots.count == 1)
        let last = fixture.state.freeSlots(of: [GrantID(rawValue: 1)], as: .abandoned)
        #expect(last.wakesLoop && last.completions.allSatisfy(\.isAbandoned))
    }

    @Test("The end of an outage is logged and expedites retries")
    func outage() throws {
        var fixture = StateFixture()
        let sent = try fixture.send(1...1)
        let actions = try fixture.commit(sent, endsOutage: true)
        let expedited = actions.compactMap { if case .expediteRetries(let client) = $0 { client } else { nil } }
        #expect(expedited == ["client"])
        #expect(actions.contains { if case .logBreaker(.closed, client: "client") = $0 { true } else { false } })
    }

    @Test("A stop takes no more work, and ends with the last refresh")
    func stop() throws {
        var fixture = StateFixture()
        let sent = try fixture.send(1...2)
        fixture.queue(3...4)
        #expect(!fixture.state.beginStop().reportsIdle)
        #expect(fixture.firstStep().isEnd, "no claim")
        let scans = fixture.state.beginReading("client")
        #expect(!scans, "no scan")
        #expect(fixture.state.nextToProbe(of: "client", at: fixture.conditions.instant) == nil, "no probe")
        #expect(!fixture.state.mayClaim(under: fixture.conditions), "no claim for a caller")
        let first = try fixture.commit([sent[0]])
        #expect(!first.reportsIdle)
        let last = try fixture.commit([sent[1]])
        #expect(last.reportsIdle)
    }

    @Test("At its deadline a stop cancels the unanswered requests, and releases their leases")
    func deadline() throws {
        var fixture = StateFixture()
        let sent = try fixture.send(1...2)
        _ = fixture.state.reserve([GrantID(rawValue: 3)], dueBy: nil)
        _ = fixture.state.beginStop()
        #expect(fixture.state.cancelRequests().cancelCount == 2)
        #expect(fixture.withhold(sent).released == [1, 2])
        _ = fixture.state.freeSlots(of: sent.map(\.grant.id), as: .abandoned)
        let last = fixture.state.abandonRefreshes()
        #expect(last.completions.count == 1 && last.reportsIdle, "the claim that the store never answered")
    }

    @Test("Leases are not released by a stop while the store fails: they expire")
    func storeFailsDuringStop() throws {
        var fixture = StateFixture()
        _ = try fixture.send(1...1)
        fixture.conditions.isCommitFailing = true
        #expect(fixture.state.mayRelease(under: fixture.conditions))
        _ = fixture.state.beginStop()
        #expect(!fixture.state.mayRelease(under: fixture.conditions))
    }
}

import Clocks
import Scheduler
import Store
import Testing

@testable import RefreshEngine

@Suite("Refreshes that end, and the stop")
struct FinishStateTests {
    @Test("A committed result is logged before its callers wake, and frees the slot")
    func committed() throws {
        var bench = StateBench()
        let sent = try bench.send(1...2)
        let actions = try bench.commit(sent)
        #expect(bench.state.slots.isEmpty && actions.wakesLoop && actions.reportsIdle)
        let order = actions.compactMap { action in
            switch action {
            case .logRefresh(_, let refresh, _): "logged \(refresh.grant.id.rawValue)"
            case .complete: "completed"
            default: nil
            }
        }
        #expect(order == ["logged 1", "completed", "logged 2", "completed"])
    }

    @Test("The next due time comes into the window if it is near")
    func nextDue() throws {
        var bench = StateBench()
        _ = try bench.commit(try bench.send(1...1), dueIn: .seconds(3))
        _ = try bench.commit(try bench.send(2...2), dueIn: .seconds(3000))
        #expect(bench.state.window.count == 1)
    }

    @Test("A request that was not sent keeps its slot until its lease is released")
    func notSent() throws {
        var bench = StateBench()
        let actions = bench.withhold(try bench.send(1...1))
        #expect(actions.released == [1] && actions.completions.isEmpty && bench.state.slots.count == 1)
        let last = bench.state.released([GrantID(rawValue: 1)], as: .abandoned)
        #expect(last.wakesLoop && last.completions.allSatisfy(\.isAbandoned))
    }

    @Test("The end of an outage is logged and hastens retries")
    func outage() throws {
        var bench = StateBench()
        let sent = try bench.send(1...1)
        let actions = try bench.commit(sent, endsOutage: true)
        let hastened = actions.compactMap { if case .hastenRetries(let client) = $0 { client } else { nil } }
        #expect(hastened == ["client"])
        #expect(actions.contains { if case .logBreaker(.closed, client: "client") = $0 { true } else { false } })
    }

    @Test("A stop takes no more work, and ends with the last refresh")
    func stop() throws {
        var bench = StateBench()
        let sent = try bench.send(1...2)
        bench.queue(3...4)
        #expect(!bench.state.beginStop().reportsIdle)
        #expect(bench.firstStep().isEnd, "no claim")
        #expect(bench.state.firstPage(of: "client", at: bench.conditions.now) == nil, "no scan")
        #expect(bench.state.nextToProbe(of: "client", at: bench.conditions.instant) == nil, "no probe")
        #expect(!bench.state.mayClaim(under: bench.conditions), "no claim for a caller")
        let first = try bench.commit([sent[0]])
        #expect(!first.reportsIdle)
        let last = try bench.commit([sent[1]])
        #expect(last.reportsIdle)
    }

    @Test("At its deadline a stop cancels the requests that are in flight, and releases their leases")
    func deadline() throws {
        var bench = StateBench()
        let sent = try bench.send(1...2)
        _ = bench.state.reserve([GrantID(rawValue: 3)], dueBy: nil)
        bench.state.sent(sent.map { ($0.grant.id, { @Sendable in }) })
        _ = bench.state.beginStop()
        #expect(bench.state.cancelRequests().cancelCount == 2)
        #expect(bench.withhold(sent).released == [1, 2])
        _ = bench.state.released(sent.map(\.grant.id), as: .abandoned)
        let last = bench.state.abandonRefreshes()
        #expect(last.completions.count == 1 && last.reportsIdle, "the claim that the store never answered")
    }

    @Test("Leases are not released by a stop while the store fails: they expire")
    func storeFailsDuringStop() throws {
        var bench = StateBench()
        _ = try bench.send(1...1)
        bench.conditions.isStoreFailing = true
        #expect(bench.state.mayRelease(under: bench.conditions))
        _ = bench.state.beginStop()
        #expect(!bench.state.mayRelease(under: bench.conditions))
    }
}

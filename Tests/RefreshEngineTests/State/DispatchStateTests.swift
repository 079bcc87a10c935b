import Clocks
import Scheduler
import Secrets
import Store
import Testing

@testable import RefreshEngine

@Suite("The dispatch of queued grants")
struct DispatchStateTests {
    @Test("Queued grants are claimed in batches, in the order of their due times")
    func batches() throws {
        var bench = StateBench(maxRate: 2_000)
        bench.queue(1...150)
        var round = bench.state.beginRound()
        #expect(bench.state.nextStep(of: &round, under: bench.conditions).claimed == Array(1...100))
        #expect(bench.state.nextStep(of: &round, under: bench.conditions).claimed == Array(101...150))
        #expect(bench.state.nextStep(of: &round, under: bench.conditions).isEnd)
    }

    @Test("No more grants are claimed than may be in flight")
    func capacity() throws {
        var bench = StateBench(mostInFlight: 4)
        bench.queue(1...10)
        let request = try bench.beginClaim()
        #expect(request.ids.count == 4)
        #expect(bench.firstStep().wait == nil, "a finished refresh wakes the loop, no timer is needed")
        let sent = try bench.claimed(request).sent
        #expect(bench.firstStep().isEnd)
        let actions = try bench.commit([sent[0]])
        #expect(actions.wakesLoop)
        #expect(bench.firstStep().claimed == [5])
    }

    @Test("A grant is in one queue once, and not while it is in flight")
    func once() throws {
        var bench = StateBench()
        let sent = try bench.send(1...1)
        bench.queue(1...2)
        bench.queue(1...2)
        #expect(bench.firstStep().claimed == [2])
        _ = try bench.commit(sent)
        bench.queue(1...1)
        #expect(bench.firstStep().claimed == [1])
    }

    @Test("A grant that a caller refreshes in between is joined and not claimed again")
    func joined() throws {
        var bench = StateBench()
        bench.queue(1...2)
        let caller = bench.state.reserve([GrantID(rawValue: 1)], dueBy: nil)
        let ids = try #require(bench.firstStep().claimed)
        let (request, completions) = bench.state.reserve(ids.map { GrantID(rawValue: $0) }, dueBy: nil)
        #expect(request.ids.map(\.rawValue) == [2])
        #expect(completions.count == 2 && completions[0] === caller.completions[0])
    }

    @Test("The pace limits a claim, and says when the next may go")
    func pace() {
        var bench = StateBench(maxRate: 50)
        bench.queue(1...30)
        #expect(bench.firstStep().claimed?.count == 10, "the pacer's burst is a fifth of a second")
        #expect(bench.firstStep().wait == .milliseconds(20))
        bench.pass(.milliseconds(20))
        #expect(bench.firstStep().claimed == [11])
    }

    @Test("Requests that were allowed and not sent are put back into the pace")
    func putBack() {
        var bench = StateBench(maxRate: 50)
        bench.queue(1...30)
        guard case .claim(let ids, let client, let takenAt) = bench.firstStep() else {
            Issue.record("nothing to claim")
            return
        }
        bench.state.putBack(ids.count, of: client, takenAt: takenAt)
        #expect(bench.firstStep().claimed?.count == 10)
    }

    @Test("A client waits for its open breaker; another client does not")
    func breaker() {
        var bench = StateBench()
        bench.queue(1...2, of: "broken")
        bench.queue(11...12, of: "well")
        bench.state.learn(bench.openBreaker(), of: "broken")
        var round = bench.state.beginRound()
        let step = bench.state.nextStep(of: &round, under: bench.conditions)
        #expect(step.client == "well" && step.claimed == [11, 12])
        let wait = bench.state.nextStep(of: &round, under: bench.conditions).wait
        #expect(wait.map { $0 > .zero && $0 <= Breaker.longestProbeDelay } ?? false)
    }

    @Test("An open breaker asks for one probe in a round, and a grant without a request does not count as one")
    func probe() throws {
        var bench = StateBench()
        bench.queue(1...3)
        bench.state.learn(bench.openBreaker(), of: "client")
        bench.pass(.seconds(60))
        var round = bench.state.beginRound()
        #expect(bench.state.nextStep(of: &round, under: bench.conditions).isProbe)
        #expect(bench.state.nextStep(of: &round, under: bench.conditions).isEnd)

        let first = try bench.nextToProbe()
        let elsewhere = bench.state.reserve([first], dueBy: nil).claim
        _ = bench.state.claimed([], for: elsewhere, leasesEnd: bench.conditions.instant)
        #expect(!bench.state.isProbe(first))
        let second = try bench.nextToProbe()
        _ = try bench.send(second.rawValue...second.rawValue)
        #expect(bench.state.isProbe(second))
    }

    @Test("Another client comes first in each round")
    func fairness() {
        var bench = StateBench(mostInFlight: 1)
        bench.queue(1...5, of: "a")
        bench.queue(11...15, of: "b")
        let clients = (0..<4).map { _ in bench.firstStep().client }
        #expect(Set(clients) == ["a", "b"] && clients[0] != clients[1] && clients[0] == clients[2])
    }

    @Test("A short queue waits a moment for more grants while many are in flight")
    func gathering() throws {
        var bench = StateBench()
        _ = try bench.send(100...160)
        bench.queue(1...3)
        #expect(bench.firstStep().wait == .milliseconds(20))
        bench.pass(.milliseconds(20))
        #expect(bench.firstStep().claimed == [1, 2, 3])
    }

    @Test("Nothing is claimed while results wait for the store, or while a key is missing")
    func trouble() {
        var bench = StateBench()
        bench.queue(1...3)
        bench.conditions.isStoreFailing = true
        #expect(bench.firstStep().wait == .seconds(1))
        bench.conditions.isStoreFailing = false
        bench.conditions.isKeyRingComplete = false
        #expect(bench.firstStep().isEnd)
        bench.conditions.isKeyRingComplete = true
        #expect(bench.firstStep().claimed == [1, 2, 3])
    }

    @Test("The next iteration is due with the next scan, the wait or the first grant, whichever comes first")
    func nextIteration() throws {
        var bench = StateBench()
        bench.state.beginScan(at: bench.conditions.instant)
        let now = bench.conditions.now
        #expect(bench.state.nextIteration(after: nil, at: bench.conditions) == now + .seconds(2))
        #expect(bench.state.nextIteration(after: .seconds(1), at: bench.conditions) == now + .seconds(1))
        bench.state.expect(try Sample.grant(1, dueAt: now + .milliseconds(300)), at: now)
        #expect(bench.state.nextIteration(after: .seconds(1), at: bench.conditions) == now + .milliseconds(300))
    }

    @Test("An engine alone takes its whole pace, and half of it beside another worker")
    func share() throws {
        var bench = StateBench(maxRate: 50)
        bench.queue(1...1)
        let key = try #require(KeyID("0a1b2c3d"))
        let another = WorkerReport(id: "another", keyIDs: [key], sealingKeyID: key, isRefreshing: true)
        let share = WorkPartition(of: "worker", among: [another])
        #expect(bench.state.change(share: share, at: bench.conditions.instant).wakesLoop)
        #expect(bench.state.change(share: share, at: bench.conditions.instant).isEmpty)
        bench.queue(2...60)
        #expect(bench.firstStep().claimed?.count == 5)
    }
}

import Base
import Crypto
import Storage
import Testing

@testable import Scheduler

@Suite("The dispatch of queued grants")
struct DispatchStateTests {
    @Test("Queued grants are claimed in batches, in the order of their due times")
    func batches() {
        var fixture = StateFixture(maxRate: 2_000)
        fixture.queue(1...250)
        #expect(fixture.firstStep().claimed == Array(1...100))
        #expect(fixture.firstStep().claimed == Array(101...200))
        #expect(fixture.firstStep().claimed == Array(201...250), "the rest does not wait again after a full claim")
        #expect(fixture.firstStep().isEnd)
    }

    @Test("No more grants are claimed than may be in flight")
    func capacity() throws {
        var fixture = StateFixture(maximumInFlight: 4)
        fixture.queue(1...10)
        let request = try fixture.beginClaim()
        #expect(request.ids.count == 4)
        #expect(fixture.firstStep().wait == nil, "a finished refresh wakes the loop, no timer is needed")
        let sent = try fixture.claimed(request).sent
        #expect(fixture.firstStep().isEnd)
        let actions = try fixture.commit([sent[0]])
        #expect(actions.wakesLoop)
        fixture.passGathering()
        #expect(fixture.firstStep().claimed == [5])
    }

    @Test("A grant is in one queue once, and not while it is in flight")
    func once() throws {
        var fixture = StateFixture()
        let sent = try fixture.send(1...1)
        fixture.queue(1...2)
        fixture.queue(1...2)
        #expect(fixture.firstStep().claimed == [2])
        _ = try fixture.commit(sent)
        fixture.queue(1...1)
        fixture.passGathering()
        #expect(fixture.firstStep().claimed == [1])
    }

    @Test("A grant that a caller refreshes in between is joined and not claimed again")
    func joined() throws {
        var fixture = StateFixture()
        fixture.queue(1...2)
        let caller = fixture.state.reserve([GrantID(rawValue: 1)], dueBy: nil)
        let ids = try #require(fixture.firstStep().claimed)
        let (request, completions) = fixture.state.reserve(ids.map { GrantID(rawValue: $0) }, dueBy: nil)
        #expect(request.ids.map(\.rawValue) == [2])
        #expect(completions.count == 2 && completions[0] === caller.completions[0])
    }

    @Test("The pace limits a claim, and says when the next may go")
    func pace() {
        var fixture = StateFixture(maxRate: 50)
        fixture.queue(1...30)
        #expect(fixture.firstStep().claimed?.count == 10, "the pacer's burst is a fifth of a second")
        #expect(fixture.firstStep().wait == RefreshEngineState.gatheringTime)
        fixture.passGathering()
        #expect(fixture.firstStep().claimed == [11, 12, 13])
        fixture.pass(.seconds(1))
        #expect(fixture.firstStep().claimed?.count == 10)
        var round = fixture.state.beginRound()
        fixture.pass(.milliseconds(100))
        #expect(fixture.state.nextStep(of: &round, under: fixture.conditions).claimed?.count == 5)
        #expect(fixture.state.nextStep(of: &round, under: fixture.conditions).wait == .zero, "the next round decides")
    }

    @Test("A round has one claim for each client, so that nothing else waits for a long queue and a slow store")
    func oneClaimEach() {
        var fixture = StateFixture(maxRate: 200)
        fixture.queue(1...1_000, of: "long")
        fixture.queue(2_001...2_010, of: "short")
        var round = fixture.state.beginRound()
        var clients: [String] = []
        var step = fixture.state.nextStep(of: &round, under: fixture.conditions)
        while let client = step.client, clients.count < 10 {
            clients.append(client)
            // As long as the pace needs for the next request.
            fixture.pass(.milliseconds(5))
            step = fixture.state.nextStep(of: &round, under: fixture.conditions)
        }
        #expect(clients.sorted() == ["long", "short"])
        #expect(step.wait == .zero, "the next round goes on with the queue")
    }

    @Test("A claim that sends nothing leaves the client its turn")
    func emptyClaim() {
        var fixture = StateFixture()
        fixture.queue(1...200)
        var round = fixture.state.beginRound()
        let first = fixture.state.nextStep(of: &round, under: fixture.conditions).claimed?.count ?? 0
        fixture.state.refund(first, of: "client", takenAt: fixture.conditions.instant)
        fixture.state.claimWasEmpty(of: "client")
        #expect(first > 0 && fixture.state.nextStep(of: &round, under: fixture.conditions).claimed?.count == first)
    }

    @Test("A store that takes 400 ms for a claim or a commit costs no request that the pace gives")
    func slowStore() {
        var fixture = StateFixture(maxRate: 200)
        fixture.queue(1...1_000)
        let span: Duration = .milliseconds(400)
        var claimed = fixture.firstStep().claimed?.count ?? 0
        for _ in 1...5 {
            fixture.pass(span)
            fixture.state.recordClaim(took: span, at: fixture.conditions.instant)
            fixture.state.inFlightLimit.recordCommit(span, at: fixture.conditions.instant)
            claimed += fixture.firstStep().claimed?.count ?? 0
        }
        #expect(claimed == 440, "two seconds at the pace, and the full bucket of the beginning")
    }

    @Test("Requests that were allowed and not sent are put back into the pace")
    func refund() {
        var fixture = StateFixture(maxRate: 50)
        fixture.queue(1...30)
        guard case .claim(let ids, let client, let takenAt) = fixture.firstStep() else {
            Issue.record("nothing to claim")
            return
        }
        fixture.state.refund(ids.count, of: client, takenAt: takenAt)
        fixture.passGathering()
        #expect(fixture.firstStep().claimed?.count == 10)
    }

    @Test("A client waits for its open breaker; another client does not")
    func breaker() {
        var fixture = StateFixture()
        fixture.queue(1...2, of: "broken")
        fixture.queue(11...12, of: "well")
        fixture.state.updateHealth(fixture.openBreaker(), of: "broken")
        var round = fixture.state.beginRound()
        let step = fixture.state.nextStep(of: &round, under: fixture.conditions)
        #expect(step.client == "well" && step.claimed == [11, 12])
        let wait = fixture.state.nextStep(of: &round, under: fixture.conditions).wait
        #expect(wait.map { $0 > .zero && $0 <= Breaker.maximumProbeDelay } ?? false)
    }

    @Test("An open breaker asks for one probe in a round, and a grant without a request does not count as one")
    func probe() throws {
        var fixture = StateFixture()
        fixture.queue(1...3)
        fixture.state.updateHealth(fixture.openBreaker(), of: "client")
        fixture.pass(.seconds(60))
        var round = fixture.state.beginRound()
        #expect(fixture.state.nextStep(of: &round, under: fixture.conditions).isProbe)
        #expect(fixture.state.nextStep(of: &round, under: fixture.conditions).isEnd)

        let first = try fixture.nextToProbe()
        let elsewhere = fixture.state.reserve([first], dueBy: nil).request
        _ = fixture.state.claimed([], for: elsewhere, leasesEnd: fixture.conditions.instant)
        #expect(!fixture.state.isProbe(first))
        let second = try fixture.nextToProbe()
        _ = try fixture.send(second.rawValue...second.rawValue)
        #expect(fixture.state.isProbe(second))
    }

    @Test("Another client comes first in each round")
    func fairness() {
        var fixture = StateFixture(maximumInFlight: 1)
        fixture.queue(1...5, of: "a")
        fixture.queue(11...15, of: "b")
        let clients = (0..<4).map { _ in fixture.firstStep().client }
        #expect(Set(clients) == ["a", "b"] && clients[0] != clients[1] && clients[0] == clients[2])
    }

    @Test("A grant goes at once; those that follow shortly after wait a moment for more")
    func gathering() {
        var fixture = StateFixture(maxRate: 2_000)
        fixture.queue(1...1)
        #expect(fixture.firstStep().claimed == [1])
        fixture.pass(.milliseconds(5))
        fixture.queue(2...3)
        let rest = RefreshEngineState.gatheringTime - .milliseconds(5)
        #expect(fixture.firstStep().wait == rest)
        fixture.pass(rest)
        #expect(fixture.firstStep().claimed == [2, 3])
        fixture.pass(.milliseconds(1))
        fixture.queue(4...110)
        #expect(fixture.firstStep().claimed == Array(4...103), "as many as are worth a claim do not wait")
    }

    @Test("A client's pause after a claim does not hold up another client")
    func gatheringOfClients() {
        var fixture = StateFixture()
        fixture.queue(1...1, of: "busy")
        #expect(fixture.firstStep().client == "busy")
        fixture.queue(2...2, of: "busy")
        fixture.queue(11...11, of: "calm")
        for _ in 0..<2 {
            var round = fixture.state.beginRound()
            let step = fixture.state.nextStep(of: &round, under: fixture.conditions)
            #expect(step.claimed == nil || step.claimed == [11])
        }
        #expect(fixture.state.gates["calm"]?.queue.isEmpty == true)
    }

    @Test("With a small in-flight limit, half of it is worth a claim")
    func gatheringWithinLimit() {
        var fixture = StateFixture(maximumInFlight: 4)
        fixture.queue(1...10)
        #expect(fixture.firstStep().claimed == [1, 2, 3, 4])
        #expect(fixture.firstStep().claimed == [5, 6, 7, 8], "nothing is in flight yet")
    }

    @Test("A grant that falls due during the pause after a claim does not wake the loop")
    func wakeAfterPause() {
        var fixture = StateFixture()
        fixture.state.beginScan(at: fixture.conditions.instant)
        fixture.queue(1...1)
        #expect(fixture.firstStep().claimed == [1])
        let now = fixture.conditions.now
        fixture.expect(2, dueIn: .milliseconds(3))
        let next = fixture.state.nextIteration(after: nil, under: fixture.conditions)
        #expect(next == now + RefreshEngineState.gatheringTime)
        fixture.state.addGate(of: "calm")
        #expect(fixture.state.nextIteration(after: nil, under: fixture.conditions) == next, "no grant of it is due")
        fixture.state.window.set(GrantID(rawValue: 3), of: "calm", dueAt: now + .milliseconds(2))
        #expect(fixture.state.nextIteration(after: nil, under: fixture.conditions) == now + .milliseconds(2))
    }

    @Test("Nothing is claimed while results wait for the store, or while a key is missing")
    func failures() {
        var fixture = StateFixture()
        fixture.queue(1...3)
        fixture.conditions.isCommitFailing = true
        #expect(fixture.firstStep().wait == .seconds(1))
        fixture.conditions.isCommitFailing = false
        fixture.conditions.isKeyRingComplete = false
        #expect(fixture.firstStep().isEnd)
        fixture.conditions.isKeyRingComplete = true
        #expect(fixture.firstStep().claimed == [1, 2, 3])
    }

    @Test("The next iteration is due with the next scan, the wait or the first grant, whichever comes first")
    func nextIteration() {
        var fixture = StateFixture()
        fixture.state.beginScan(at: fixture.conditions.instant)
        let now = fixture.conditions.now
        #expect(fixture.state.nextIteration(after: nil, under: fixture.conditions) == now + .seconds(2))
        #expect(fixture.state.nextIteration(after: .seconds(1), under: fixture.conditions) == now + .seconds(1))
        fixture.expect(1, dueIn: .milliseconds(300))
        #expect(fixture.state.nextIteration(after: .seconds(1), under: fixture.conditions) == now + .milliseconds(300))
    }

    @Test("An engine alone takes its whole pace, and half of it beside another worker")
    func share() throws {
        var fixture = StateFixture(maxRate: 50)
        fixture.queue(1...1)
        let key = try #require(KeyID("0a1b2c3d"))
        let another = WorkerReport(id: "another", keyIDs: [key], sealingKeyID: key, isRefreshing: true)
        let share = WorkPartition(of: "worker", among: [another])
        #expect(fixture.state.change(share: share, at: fixture.conditions.instant).wakesLoop)
        #expect(fixture.state.change(share: share, at: fixture.conditions.instant).isEmpty)
        fixture.queue(2...60)
        #expect(fixture.firstStep().claimed?.count == 5)
    }
}

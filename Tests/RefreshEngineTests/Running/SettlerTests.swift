import Clocks
import GoogleOAuth
import Store
import Testing

@testable import RefreshEngine

/// What cannot be stored waits, and is counted; what can be stored does not wait for it.
@Suite(.timeLimit(.minutes(1)))
struct SettlerTests {
    private let time = ManualTime()

    private func arrival(_ number: Int64) throws -> Arrival {
        let grant = try Sample.grant(number)
        let flight = Flight(grant: grant, claim: 7, isForced: true, leaseStandsUntil: time.sinceBoot)
        let finding = Finding(attempt: flight.attempt, answer: .refused(.noAnswer(code: "timeout"), retryAfter: nil))
        return Arrival(flight, with: Courier.Report(finding: finding))
    }

    @Test("a finding that the store refuses for good does not keep a later one from being stored, and is answered")
    func refusedFinding() async throws {
        let bench = SettlerBench(store(failing: 1, with: .corrupt), time: time)
        bench.settler.take(try arrival(1))
        await bench.waitForTrouble()
        bench.settler.take(try arrival(2))
        let stored = await bench.nextLanded()
        #expect(stored.flight.grant.id == GrantID(rawValue: 2) && stored.settled != nil)
        await bench.settler.giveUp()
        let refused = await bench.nextLanded()
        #expect(refused.flight.grant.id == GrantID(rawValue: 1) && refused.settled == nil)
    }

    @Test("what is being written when the worker gives up is answered as lost, and so is what comes later")
    func findingInHand() async throws {
        let bench = SettlerBench(store(failing: .max, with: .diskFull), time: time)
        bench.settler.take(try arrival(1))
        await bench.waitForTrouble()
        await bench.settler.giveUp()
        #expect(await bench.nextLanded().settled == nil)
        bench.settler.take(try arrival(2))
        #expect(await bench.nextLanded().settled == nil)
    }

    @Test("what was not sent is delivered and leaves the store alone")
    func notSent() async throws {
        let bench = SettlerBench(store(failing: .max, with: .diskFull), time: time)
        let flight = try arrival(1).flight
        let finding = Finding(attempt: flight.attempt, answer: .refused(.notSent(code: "withheld"), retryAfter: nil))
        bench.settler.take(Arrival(flight, with: Courier.Report(finding: finding)))
        let landed = await bench.nextLanded()
        #expect(landed.settled == nil && landed.report.finding.answer.isNotSent)
    }

    @Test("each of many arrivals is delivered once, in the order of their storing")
    func many() async throws {
        let bench = SettlerBench(InMemoryStore(timeSource: time), time: time)
        let settler = bench.settler
        let arrivals = try (1...1_000).map { try arrival(Int64($0)) }
        await withTaskGroup { group in
            for part in 0..<4 {
                group.addTask {
                    for arrival in arrivals where arrival.flight.grant.id.rawValue % 4 == part { settler.take(arrival) }
                }
            }
        }
        var last = [Int64](repeating: 0, count: 4)
        for _ in arrivals {
            let number = await bench.nextLanded().flight.grant.id.rawValue
            #expect(number > last[Int(number % 4)])
            last[Int(number % 4)] = number
        }
        #expect(last.sorted() == [997, 998, 999, 1_000])
    }

    private func store(failing transactions: Int, with code: StoreError.Code) -> FailingStore {
        let store = FailingStore(InMemoryStore(timeSource: time))
        store.failTransactions(transactions, with: code)
        return store
    }
}

/// A settler over a store, with what it delivers and complains of.
private struct SettlerBench {
    let settler: Settler
    private let landed: Stream<Landed>
    private let troubles: Stream<Void>

    init(_ store: any GrantStore, time: ManualTime) {
        let landed = Stream<Landed>()
        let troubles = Stream<Void>()
        self.landed = landed
        self.troubles = troubles
        settler = Settler(
            store: store,
            rules: RefreshRules(maxRate: 200),
            time: time,
            random: SeededRandom(seed: 1),
            onTrouble: { _, _ in troubles.add(()) },
            deliver: { batch in for one in batch { landed.add(one) } }
        )
    }

    func waitForTrouble() async { await troubles.next() }

    func nextLanded() async -> Landed { await landed.next() }
}

/// Values from any thread, one by one.
private final class Stream<Value: Sendable>: Sendable {
    private let values: AsyncStream<Value>
    private let source: AsyncStream<Value>.Continuation

    init() {
        (values, source) = AsyncStream.makeStream()
    }

    func add(_ value: Value) { source.yield(value) }

    func next() async -> Value {
        var values = values.makeAsyncIterator()
        guard let value = await values.next() else { preconditionFailure("the stream does not end") }
        return value
    }
}

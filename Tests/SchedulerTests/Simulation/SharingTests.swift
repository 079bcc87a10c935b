import Crypto
import Storage
import TestSupport
import Testing

@testable import Base
@testable import Scheduler

@Suite("Workers share the work", .timeLimit(.minutes(10)))
struct SharingTests {
    private func reports(_ names: [String], idle: [String] = []) throws -> [WorkerReport] {
        let key = try #require(KeyID("0a1b2c3d"))
        return (names + idle).map { name in
            WorkerReport(id: name, keyIDs: [key], sealingKeyID: key, isRefreshing: names.contains(name))
        }
    }

    @Test("Every grant is in the share of exactly one refreshing worker", arguments: 1...7)
    func partition(count: Int) throws {
        let names = (0..<count).map { "worker \($0)" }
        let reports = try reports(names, idle: ["a command", "z command"])
        let shares = names.map { WorkPartition(of: $0, among: reports) }
        let random = SeededRandom(seed: UInt64(count))
        var parts = [Int](repeating: 0, count: count)
        for _ in 0..<10_000 {
            let id = GrantID.random(from: random)
            let owners = shares.indices.filter { shares[$0].owns(id) }
            #expect(owners.count == 1)
            for owner in owners { parts[owner] += 1 }
        }
        #expect(parts.allSatisfy { abs($0 - 10_000 / count) < 500 }, "\(parts)")
    }

    @Test("A worker without a report yet counts itself")
    func newcomer() throws {
        #expect(WorkPartition(of: "new", among: []) == .whole)
        #expect(WorkPartition(of: "new", among: try reports(["old"])).count == 2)
    }

    @Test("Two workers refresh their shares on time, and one all grants after the other has died")
    func takesOver() async throws {
        let fixture = try EngineFixture(seed: 60)
        try await fixture.add(0..<300, dueIn: .seconds(60))
        let engines = ["first", "second"].map { fixture.engine($0, scanInterval: .seconds(2), maxRate: 10_000) }
        let both = try reports(["first", "second"])
        for engine in engines { await engine.updateShare(among: both) }

        // The first alone: its share is due, then it takes the second's, which is overdue.
        await fixture.run(engines[0], for: .seconds(61), grain: .seconds(1))
        let own = fixture.google.calls
        #expect((100...200).contains(own), "\(own) of 300 were its own")
        await fixture.run(engines[0], for: .seconds(10), grain: .seconds(1))
        #expect(fixture.google.calls == 300)

        // Both again: each grant once in each period.
        await fixture.run(engines, for: .seconds(3 * 3600), grain: .seconds(30))
        #expect(fixture.google.accounts.values.allSatisfy { $0.maximumInFlight == 1 && $0.longestGap == .zero })
        #expect(try await fixture.states() == [.active: 300])
    }

    @Test("After an outage overdue grants go out at the whole rate, with any number of workers", arguments: [1, 2, 4])
    func drainsAtTheWholeRate(count: Int) async throws {
        let fixture = try EngineFixture(seed: 61)
        try await fixture.add(0..<3000)
        // Longer than any worker leaves overdue grants to the worker whose share they are.
        fixture.time.advance(by: .seconds(60))
        let names = (0..<count).map { "worker \($0)" }
        let engines = names.map { fixture.engine($0, scanInterval: .seconds(2), maxRate: 100) }
        for engine in engines { await engine.updateShare(among: try reports(names)) }
        await fixture.run(engines, for: .seconds(10))
        #expect((950...1050).contains(fixture.google.calls), "\(fixture.google.calls) in 10 s at 100 a second")
    }
}

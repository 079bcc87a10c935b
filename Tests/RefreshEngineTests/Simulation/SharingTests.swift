import Clocks
import Secrets
import Store
import Testing

@testable import RefreshEngine

@Suite("Workers share the work", .timeLimit(.minutes(10)))
struct SharingTests {
    private func reports(_ names: [String], idle: [String] = []) throws -> [WorkerReport] {
        let key = try #require(KeyID("0a1b2c3d"))
        return (names + idle).map { name in
            WorkerReport(id: name, keyIDs: [key], sealingKeyID: key, isRefreshing: names.contains(name))
        }
    }

    @Test("Every grant is the part of exactly one of those that refresh", arguments: 1...7)
    func partition(count: Int) throws {
        let names = (0..<count).map { "worker \($0)" }
        let reports = try reports(names, idle: ["a command", "z command"])
        let shares = names.map { Share(of: $0, among: reports) }
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

    @Test("A worker that nobody has heard of yet counts itself")
    func newcomer() throws {
        #expect(Share(of: "new", among: []) == .whole)
        #expect(Share(of: "new", among: try reports(["old"])).count == 2)
    }

    @Test("Two workers refresh each its part on time, and one alone the whole when the other has gone without a word")
    func takesOver() async throws {
        let world = try World(seed: 60)
        try await world.add(0..<300, dueIn: .seconds(60))
        let engines = ["first", "second"].map { world.engine($0, scanInterval: .seconds(2), maxRate: 10_000) }
        let both = try reports(["first", "second"])
        for engine in engines { await engine.takeShare(among: both) }

        // The first alone: its part is due, then the second's, left lying, is taken.
        await world.run(engines[0], for: .seconds(61), grain: .seconds(1))
        let own = world.google.calls
        #expect((100...200).contains(own), "\(own) of 300 were its own")
        await world.run(engines[0], for: .seconds(10), grain: .seconds(1))
        #expect(world.google.calls == 300)

        // Both again: each grant once in each period.
        await world.run(engines, for: .seconds(3 * 3600), grain: .seconds(30))
        #expect(world.google.accounts.values.allSatisfy { $0.mostAloft == 1 && $0.longestGap == .zero })
        #expect(try await world.states() == [.active: 300])
    }

    @Test("After an outage what lies due goes out at the whole rate, however many share it", arguments: [1, 2, 4])
    func drainsAtTheWholeRate(count: Int) async throws {
        let world = try World(seed: 61)
        try await world.add(0..<3000)
        // Longer than any worker leaves to another what is the other's.
        world.time.advance(by: .seconds(60))
        let names = (0..<count).map { "worker \($0)" }
        let engines = names.map { world.engine($0, scanInterval: .seconds(2), maxRate: 100) }
        for engine in engines { await engine.takeShare(among: try reports(names)) }
        await world.run(engines, for: .seconds(10))
        #expect((950...1050).contains(world.google.calls), "\(world.google.calls) in 10 s at 100 a second")
    }
}

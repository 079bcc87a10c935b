import Clocks
import GoogleOAuth
import RefreshEngine
import Secrets
import Store
import Testing

@testable import RefreshEngine

@Suite("The store fails for a while", .timeLimit(.minutes(10)))
struct StoreTroubleTests {
    private func world(rotates: Bool = true) throws -> (World, FailingStore) {
        var failing: FailingStore?
        let world = try World(seed: 60, rotates: rotates) { memory in
            let store = FailingStore(memory)
            failing = store
            return store
        }
        return (world, try #require(failing))
    }

    @Test(
        "No result is lost, and no grant is refreshed again before its result is stored",
        arguments: [StoreError.Code.busy, .diskFull, .input, .fault]
    )
    func nothingLost(code: StoreError.Code) async throws {
        let (world, store) = try world()
        try await world.add(0..<40)
        let engine = world.engine()
        store.failTransactions(5, with: code)
        _ = await engine.runLoopIteration()
        let rest = await engine.inFlight
        #expect(rest > 0)
        await world.time.sleepers(atLeast: 1)
        for _ in 0..<5 {
            // The window is read again while results wait: grants in flight are left alone.
            world.time.advance(by: .seconds(5))
            await engine.renewLeases()
            _ = await engine.runLoopIteration()
        }
        await world.settle(engine)
        #expect(store.failed == 5)
        #expect(world.google.accounts.count == 40)
        #expect(world.google.accounts.values.allSatisfy { $0.asked.count == 1 })
        #expect(try await world.states() == [.active: 40])
        #expect(try await world.accountsWithLostToken().isEmpty)
        for number in 0..<40 {
            let grant = try await world.grant(number)
            #expect(try world.vault.openRefreshToken(of: grant)?.reveal() == "refresh-\(number)-1")
        }
        #expect(world.lines.of("alarm").map { $0["kind"] } == ["store_failing"])
    }

    @Test("Results that a stopping worker cannot store within its deadline are counted")
    func gaveUp() async throws {
        let (world, store) = try world()
        try await world.add(0..<3)
        let engine = world.engine()
        store.failTransactions(.max)
        _ = await engine.runLoopIteration()
        await world.time.sleepers(atLeast: 1)
        async let lost = engine.stop(within: .zero)
        // The committer, and the stop.
        await world.time.sleepers(atLeast: 2)
        world.time.advance(by: .seconds(1))
        #expect(await lost == UnstoredResults(spilled: 0, lost: 3))
        #expect(await engine.inFlight == 0)
    }

    @Test("A stop ends the retries after outages of all clients")
    func retriesEnd() async throws {
        let (world, store) = try world()
        store.retryEndlessly()
        let engine = world.engine()
        for client in ["one", "two", "three"] { await engine.hastenRetries(of: client) }
        _ = await engine.stop(within: .seconds(1))
        await engine.hastening?.value
    }

    @Test("Results that a slow disk has not taken before the worker must end are counted as lost")
    func slowSpill() async throws {
        let (world, store) = try world()
        try await world.add(0..<3)
        let gate = Gate()
        let engine = world.engine(spill: MemorySpill(gate: gate))
        store.failTransactions(.max)
        _ = await engine.runLoopIteration()
        await world.time.sleepers(atLeast: 1)
        async let unstored = engine.stop(within: .zero)
        // The committer, and the stop.
        await world.time.sleepers(atLeast: 2)
        world.time.advance(by: .seconds(1))
        await world.time.sleepers(atLeast: 1, for: .seconds(2))
        world.time.advance(by: .seconds(2))
        #expect(await unstored == UnstoredResults(lost: 3))
        gate.open()
    }
}

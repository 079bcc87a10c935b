import Clocks
import Scheduler
import Store
import Synchronization
import Testing

@testable import RefreshEngine

extension RefreshEngine {
    fileprivate func onProgress(_ action: @escaping @Sendable () -> Void) { reportProgress = action }
}

@Suite("Claims that fail or return no grant", .timeLimit(.minutes(10)))
struct ClaimTroubleTests {
    private func world() throws -> (World, FailingStore) {
        var failing: FailingStore?
        let world = try World(seed: 70) { memory in
            let store = FailingStore(memory)
            failing = store
            return store
        }
        return (world, try #require(failing))
    }

    @Test("A failed claim ends the iteration", arguments: [StoreError.Code.unreachable, .diskFull, .moved])
    func failedClaim(code: StoreError.Code) async throws {
        let (world, store) = try world()
        try await world.add(0..<300)
        let engine = world.engine()
        store.failClaims(with: code)
        // Each claim takes as long as the store's patience, during which the pace allows more.
        store.beforeClaim { _ in world.time.advance(by: .seconds(10)) }
        _ = await engine.runLoopIteration()
        #expect(store.claims == 1)
        #expect(await engine.inFlight == 0)
    }

    @Test("Claims pause after a failure, and continue when the store works again")
    func pause() async throws {
        let (world, store) = try world()
        try await world.add(0..<30)
        let engine = world.engine(scanInterval: .seconds(2))
        store.failClaims(with: .unreachable)
        _ = await engine.runLoopIteration()
        await engine.storeChanged()
        for _ in 0..<5 { _ = await engine.runLoopIteration() }
        #expect(store.claims == 1, "iterations within the pause claim nothing")
        store.failClaims(with: nil)
        await world.run(engine, for: .seconds(20))
        #expect(try await world.states() == [.active: 30])
        #expect(world.google.calls == 30)
    }

    @Test("The loop reports that it is alive after each claim, not only after each iteration")
    func progress() async throws {
        let (world, store) = try world()
        try await world.add(0..<250)
        let engine = world.engine()
        let beats = Mutex(0)
        let seen = Mutex<[Int]>([])
        store.beforeClaim { _ in
            world.time.advance(by: .seconds(1))
            let count = beats.withLock { $0 }
            seen.withLock { $0.append(count) }
        }
        await engine.onProgress { beats.withLock { $0 += 1 } }
        _ = await engine.runLoopIteration()
        let counts = seen.withLock { $0 }
        #expect(counts.count > 1 && zip(counts, counts.dropFirst()).allSatisfy(<), "\(counts)")
        await engine.waitUntilNothingIsInFlight()
    }

    @Test("A stopping engine does not look for another grant to probe with")
    func stoppedProbe() async throws {
        let (world, store) = try world()
        try await world.add(0..<200)
        let client = World.clientID
        try await world.memory.transact { transaction in
            var health = ClientHealth(epoch: transaction.leaseTime.epoch)
            _ = health.breaker.clientFault("invalid_client", at: transaction.leaseTime.instant, unit: 0.5)
            try transaction.setClientHealth(health.stored, of: client)
        }
        world.time.advance(by: .seconds(3600))
        let engine = world.engine()
        store.beforeClaim { number in
            guard number == 1 else { return }
            // Another worker has the grants of this claim, and the stop comes during the claim.
            let grants = (try? await world.grants().map(\.id)) ?? []
            _ = try? await world.memory.claim(grants, dueBy: nil, owner: "another", for: .seconds(30))
            Task { await engine.stop(within: .seconds(30)) }
            // The stop waits for its deadline once it has begun.
            await world.time.sleepers(atLeast: 1)
        }
        _ = await engine.runLoopIteration()
        #expect(store.claims == 1)
    }

    @Test("A revocation whose lease is about to end is not sent")
    func lateRevocation() async throws {
        let (world, store) = try world()
        try await world.add(0..<1)
        try await world.change(0) { $0.disconnectByRequest(revokes: true, at: start) }
        let engine = world.engine()
        // The check for another grant of the account waits for a slow store.
        let isFirst = Mutex(true)
        store.beforeTransaction {
            guard
                isFirst.withLock({ first in
                    defer { first = false }; return first
                })
            else { return }
            world.time.advance(by: .seconds(28))
        }
        _ = await engine.runLoopIteration()
        await engine.settleDown()
        #expect(world.google.revoked.isEmpty, "two seconds of the lease are left")
        #expect(try await world.grant(0).revocationAskedAt != nil)
        await world.run(engine, for: .seconds(90))
        #expect(world.google.revoked.count == 1)
    }
}

import Storage
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import Scheduler

extension RefreshEngine {
    fileprivate func onProgress(_ action: @escaping @Sendable () -> Void) { reportProgress = action }
}

@Suite("Claims that fail or return no grant", .timeLimit(.minutes(10)))
struct ClaimFailureTests {
    private let fixture: EngineFixture
    private var store: TestStore { fixture.store }

    init() throws {
        fixture = try EngineFixture(seed: 70)
    }

    @Test("A failed claim ends the iteration", arguments: [StoreError.Code.unreachable, .diskFull, .moved])
    func failedClaim(code: StoreError.Code) async throws {
        try await fixture.add(0..<300)
        let engine = fixture.engine()
        store.failClaims(with: code)
        // Each claim takes as long as the store's timeout, during which the pace allows more.
        store.beforeClaim { _ in fixture.time.advance(by: .seconds(10)) }
        _ = await engine.runLoopIteration()
        #expect(store.claims == 1)
        #expect(await engine.inFlight == 0)
    }

    @Test("Claims pause after a failure, and continue when the store works again")
    func pause() async throws {
        try await fixture.add(0..<30)
        let engine = fixture.engine(scanInterval: .seconds(2))
        store.failClaims(with: .unreachable)
        _ = await engine.runLoopIteration()
        await engine.storeChanged()
        for _ in 0..<5 { _ = await engine.runLoopIteration() }
        #expect(store.claims == 1, "iterations within the pause claim nothing")
        await fixture.run(engine, for: .seconds(20))
        #expect(await engine.failingToClaimFor.map { $0 >= .seconds(20) } == true, "readiness shows it")
        store.failClaims(with: nil)
        await fixture.run(engine, for: .seconds(20))
        #expect(await engine.failingToClaimFor == nil)
        #expect(try await fixture.states() == [.active: 30])
        #expect(fixture.google.calls == 30)
    }

    @Test("A store that fails while grants are claimed one by one is not asked for the rest")
    func failsBetweenRows() async throws {
        try await fixture.add(0..<30)
        let engine = fixture.engine()
        let (store, time) = (store, fixture.time)
        store.beforeClaim { number in
            switch number {
            case 3: store.failClaims(with: .corrupt)
            // The first grant alone can be claimed, so the former failures no longer count.
            case 4: store.failClaims(with: nil)
            default: store.failClaims(with: .unreachable)
            }
        }
        for _ in 0..<3 {
            _ = await engine.runLoopIteration()
            time.advance(by: .seconds(6))
            await engine.storeChanged()
        }
        #expect(store.claims == 5)
        await engine.waitUntilIdle()
        #expect(fixture.google.calls == 1)
    }

    @Test("A failed claim is forgotten if no other one follows")
    func lonelyFailure() {
        let start = BootInstant(milliseconds: 0)
        var backOff = ClaimBackOff(at: start)
        backOff.fail(at: start, jitter: 0)
        #expect(backOff.failingFor(at: start + .seconds(10)) == .seconds(10))
        #expect(backOff.failingFor(at: start + .seconds(60)) == nil)
    }

    @Test("The loop reports that it is alive after each claim, not only after each iteration")
    func progress() async throws {
        for (number, client) in ["a", "b", "c"].enumerated() { try await fixture.add(number..<number + 1, of: client) }
        let engine = fixture.engine()
        let reports = Mutex(0)
        let seen = Mutex<[Int]>([])
        store.beforeClaim { _ in
            fixture.time.advance(by: .seconds(1))
            let count = reports.withLock { $0 }
            seen.withLock { $0.append(count) }
        }
        await engine.onProgress { reports.withLock { $0 += 1 } }
        _ = await engine.runLoopIteration()
        let counts = seen.withLock { $0 }
        #expect(counts.count == 3 && zip(counts, counts.dropFirst()).allSatisfy(<), "\(counts)")
        await engine.waitUntilNothingIsInFlight()
    }

    @Test("A stopping engine does not claim another grant to probe with")
    func stoppedProbe() async throws {
        try await fixture.add(0..<200)
        let client = EngineFixture.clientID
        try await fixture.store.database.transact { transaction in
            var health = ClientHealth(epoch: transaction.leaseTime.epoch)
            _ = health.breaker.clientFault("invalid_client", at: transaction.leaseTime.instant, jitter: 0.5)
            try transaction.setClientHealth(health.stored, of: client)
        }
        fixture.time.advance(by: .seconds(3600))
        let engine = fixture.engine()
        store.beforeClaim { number in
            guard number == 1 else { return }
            // Another worker has the grants of this claim, and the stop comes during the claim.
            let grants = (try? await fixture.grants().map(\.id)) ?? []
            _ = try? await fixture.store.database.claim(grants, dueBy: nil, owner: "another", for: .seconds(30))
            Task { await engine.stop(within: .seconds(30)) }
            // The stop waits for its deadline once it has begun.
            await fixture.time.sleepers(atLeast: 1)
        }
        _ = await engine.runLoopIteration()
        #expect(store.claims == 1)
    }

    @Test("A revocation whose lease is about to end is not sent")
    func lateRevocation() async throws {
        try await fixture.add(0..<1)
        try await fixture.change(0) { $0.disconnectByRequest(revokes: true, at: start) }
        let engine = fixture.engine()
        // The check for another grant of the account waits for a slow store.
        let isFirst = Mutex(true)
        store.beforeTransaction {
            guard
                isFirst.withLock({ first in
                    defer { first = false }; return first
                })
            else { return }
            fixture.time.advance(by: .seconds(28))
        }
        _ = await engine.runLoopIteration()
        await engine.waitUntilIdle()
        #expect(fixture.google.revoked.isEmpty, "two seconds of the lease are left")
        #expect(try await fixture.grant(0).revocationAskedAt != nil)
        await fixture.run(engine, for: .seconds(90))
        #expect(fixture.google.revoked.count == 1)
    }
}

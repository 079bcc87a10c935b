import Crypto
import GoogleOAuth
import Storage
import TestSupport
import Testing

@testable import Base
@testable import Scheduler

@Suite("The store fails for a while", .timeLimit(.minutes(10)))
struct StoreFailureTests {
    private let fixture: EngineFixture
    private var store: TestStore { fixture.store }

    init() throws {
        fixture = try EngineFixture(seed: 60, rotates: true)
    }

    @Test(
        "No result is lost, and no grant is refreshed again before its result is stored",
        arguments: [StoreError.Code.busy, .diskFull, .ioFailure, .fault]
    )
    func nothingLost(code: StoreError.Code) async throws {
        try await fixture.add(0..<40)
        let engine = fixture.engine()
        store.failTransactions(5, with: code)
        _ = await engine.runLoopIteration()
        let rest = await engine.inFlight
        #expect(rest > 0)
        await fixture.time.sleepers(atLeast: 1)
        for _ in 0..<5 {
            // The window is read again while results wait: grants in flight are left alone.
            fixture.time.advance(by: .seconds(5))
            await engine.renewLeases()
            _ = await engine.runLoopIteration()
        }
        await fixture.waitUntilIdle(engine)
        #expect(store.failed == 5)
        #expect(fixture.google.accounts.count == 40)
        #expect(fixture.google.accounts.values.allSatisfy { $0.requestTimes.count == 1 })
        #expect(try await fixture.states() == [.active: 40])
        #expect(try await fixture.accountsWithLostToken().isEmpty)
        for number in 0..<40 {
            let grant = try await fixture.grant(number)
            #expect(try fixture.vault.openRefreshToken(of: grant)?.reveal() == "refresh-\(number)-1")
        }
        #expect(fixture.lines.of("alarm").map { $0["kind"] } == ["store_failing"])
    }

    @Test("Results that a stopping worker cannot store within its deadline are counted")
    func gaveUp() async throws {
        try await fixture.add(0..<3)
        let engine = fixture.engine()
        store.failTransactions(.max)
        _ = await engine.runLoopIteration()
        await fixture.time.sleepers(atLeast: 1)
        async let lost = engine.stop(within: .zero)
        // The committer, and the stop.
        await fixture.time.sleepers(atLeast: 2)
        fixture.time.advance(by: .seconds(1))
        #expect(await lost == UnstoredResults(spilled: 0, lost: 3))
        #expect(await engine.inFlight == 0)
    }

    @Test("A stop ends the retries after outages of all clients")
    func retriesEnd() async throws {
        store.retryEndlessly()
        let engine = fixture.engine()
        for client in ["one", "two", "three"] { await engine.expediteRetries(of: client) }
        _ = await engine.stop(within: .seconds(1))
        for task in await engine.outageRetries.values { await task.value }
    }

    @Test("Results that a slow disk has not taken before the worker must end are counted as lost")
    func slowSpill() async throws {
        try await fixture.add(0..<3)
        let gate = Gate()
        let engine = fixture.engine(spill: MemorySpill(gate: gate))
        store.failTransactions(.max)
        _ = await engine.runLoopIteration()
        await fixture.time.sleepers(atLeast: 1)
        async let unstored = engine.stop(within: .zero)
        // The committer, and the stop.
        await fixture.time.sleepers(atLeast: 2)
        fixture.time.advance(by: .seconds(1))
        await fixture.time.sleepers(atLeast: 1, for: .seconds(2))
        fixture.time.advance(by: .seconds(2))
        #expect(await unstored == UnstoredResults(lost: 3))
        gate.open()
    }
}

import Clocks
import GoogleOAuth
import RefreshEngine
import Store
import Testing

@Suite("The machine's clock is stepped", .timeLimit(.minutes(10)))
struct ClockStepTests {
    @Test("An hour forward and back leaves no grant without a good token for long", arguments: [10, 3000])
    func forwardAndBack(between seconds: Int) async throws {
        let world = try World(seed: 40)
        try await world.add(0..<100)
        let engine = world.engine()
        await world.run(engine, for: .seconds(2 * 3600), grain: .seconds(60))
        world.time.stepWallClock(by: .seconds(3600))
        await world.run(engine, for: .seconds(seconds), grain: .seconds(5))
        world.time.stepWallClock(by: .seconds(-3600))
        await world.run(engine, for: .seconds(90), grain: .seconds(2))
        #expect(world.google.accountsWithoutToken().isEmpty)
        // Stored times come from the clock that is right now.
        let now = world.time.now
        for grant in try await world.grants() {
            let token = try #require(grant.accessToken)
            #expect(token.obtainedAt <= now && token.expiresAt > now)
            #expect(VendDecision.make(for: grant, minimumLife: .zero, at: now) == .serve)
        }
        await world.run(engine, for: .seconds(2 * 3600), grain: .seconds(60))
        #expect(world.google.accounts.values.allSatisfy { $0.longestGap == .zero })
        #expect(world.lines.of("clock_step").count == 2)
        #expect(try await world.states() == [.active: 100])
    }

    @Test("After a clock is set back, grants whose last attempt failed while it was ahead are repaired")
    func failingWhileAhead() async throws {
        let world = try World(seed: 41)
        try await world.add(0..<100)
        let engine = world.engine()
        await world.run(engine, for: .seconds(2 * 3600), grain: .seconds(60))
        // A third of the grants cannot be refreshed while the clock is ahead.
        world.time.stepWallClock(by: .seconds(3600))
        world.google.answer { $0.account % 3 == 0 ? .answer(.endpointFault(code: "http_503")) : .grant }
        await world.run(engine, for: .seconds(10))
        world.time.stepWallClock(by: .seconds(-3600))
        world.google.answer { _ in .grant }
        await world.run(engine, for: .seconds(90), grain: .seconds(2))
        #expect(try await world.states() == [.active: 100])
        await world.run(engine, for: .seconds(2 * 3600), grain: .seconds(60))
        #expect(world.google.accounts.values.allSatisfy { $0.longestGap == .zero })
    }

    @Test("A clock set back while the store fails is repaired when the store works again")
    func storeFails() async throws {
        var failing: FailingStore?
        let world = try World(seed: 43) { memory in
            let store = FailingStore(memory)
            failing = store
            return store
        }
        let store = try #require(failing)
        try await world.add(0..<20)
        let engine = world.engine()
        await world.run(engine, for: .seconds(600), grain: .seconds(60))
        world.time.stepWallClock(by: .seconds(7200))
        await world.run(engine, for: .seconds(90), grain: .seconds(2))
        world.time.stepWallClock(by: .seconds(-7200))
        store.failReschedules(3)
        await world.run(engine, for: .seconds(150), grain: .seconds(2))
        let now = world.time.now
        #expect(try await world.grants().allSatisfy { $0.accessToken.map { $0.obtainedAt <= now } ?? false })
        #expect(world.lines.of("clock_step").count == 2)
    }

    @Test("A step whose repair was cut short is repaired by the next worker", arguments: [false, true])
    func diesDuringRepair(stopsInOrder: Bool) async throws {
        var failing: FailingStore?
        let world = try World(seed: 44) { memory in
            let store = FailingStore(memory)
            failing = store
            return store
        }
        let store = try #require(failing)
        world.time.stepWallClock(by: .seconds(3600))
        try await world.add(0..<20)
        let first = world.engine("first")
        await world.run(first, for: .seconds(600), grain: .seconds(5))
        await first.recordClock()
        world.time.stepWallClock(by: .seconds(-3600))
        store.failReschedules(1)
        let second = world.engine("second")
        await second.watchClock()
        if stopsInOrder { await second.recordClock() }
        let third = world.engine("third")
        await world.run(third, for: .seconds(90), grain: .seconds(2))
        let now = world.time.now
        #expect(try await world.grants().allSatisfy { $0.accessToken.map { $0.obtainedAt <= now } ?? false })
    }

    @Test("A step between two runs is detected by the second")
    func betweenRuns() async throws {
        let world = try World(seed: 42)
        world.time.stepWallClock(by: .seconds(3600))
        try await world.add(0..<50)
        let first = world.engine("first")
        await world.run(first, for: .seconds(600), grain: .seconds(5))
        await first.recordClock()
        world.time.stepWallClock(by: .seconds(-3600))
        let second = world.engine("second")
        await world.run(second, for: .seconds(90), grain: .seconds(2))
        #expect(try await world.grants().allSatisfy { $0.accessToken.map { $0.obtainedAt <= world.time.now } ?? false })
        await world.run(second, for: .seconds(2 * 3600), grain: .seconds(60))
        #expect(world.google.accounts.values.allSatisfy { $0.longestGap == .zero })
    }
}

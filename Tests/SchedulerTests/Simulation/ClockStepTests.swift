import GoogleOAuth
import Storage
import TestSupport
import Testing

@testable import Base
@testable import Scheduler

@Suite("The machine's clock is stepped", .timeLimit(.minutes(10)))
struct ClockStepTests {
    @Test("An hour forward and back leaves no grant without a good token for long", arguments: [10, 3000])
    func forwardAndBack(between seconds: Int) async throws {
        let fixture = try EngineFixture(seed: 40)
        try await fixture.add(0..<100)
        let engine = fixture.engine()
        await fixture.run(engine, for: .seconds(2 * 3600), grain: .seconds(60))
        fixture.time.stepWallClock(by: .seconds(3600))
        await fixture.run(engine, for: .seconds(seconds), grain: .seconds(5))
        fixture.time.stepWallClock(by: .seconds(-3600))
        await fixture.run(engine, for: .seconds(90), grain: .seconds(2))
        #expect(fixture.google.accountsWithoutToken().isEmpty)
        // Stored times come from the clock that is right now.
        let now = fixture.time.now
        for grant in try await fixture.grants() {
            let token = try #require(grant.accessToken)
            #expect(token.obtainedAt <= now && token.expiresAt > now)
            #expect(VendDecision.make(for: grant, minimumLife: .zero, at: now) == .serve)
        }
        await fixture.run(engine, for: .seconds(2 * 3600), grain: .seconds(60))
        #expect(fixture.google.accounts.values.allSatisfy { $0.longestGap == .zero })
        #expect(fixture.lines.of("clock_step").count == 2)
        #expect(try await fixture.states() == [.active: 100])
    }

    @Test("After a clock is set back, grants whose last attempt failed while it was ahead are repaired")
    func failingWhileAhead() async throws {
        let fixture = try EngineFixture(seed: 41)
        try await fixture.add(0..<100)
        let engine = fixture.engine()
        await fixture.run(engine, for: .seconds(2 * 3600), grain: .seconds(60))
        // A third of the grants cannot be refreshed while the clock is ahead.
        fixture.time.stepWallClock(by: .seconds(3600))
        fixture.google.answer { $0.account % 3 == 0 ? .answer(.endpointFault(code: "http_503")) : .grant }
        await fixture.run(engine, for: .seconds(10))
        fixture.time.stepWallClock(by: .seconds(-3600))
        fixture.google.answer { _ in .grant }
        await fixture.run(engine, for: .seconds(90), grain: .seconds(2))
        #expect(try await fixture.states() == [.active: 100])
        await fixture.run(engine, for: .seconds(2 * 3600), grain: .seconds(60))
        #expect(fixture.google.accounts.values.allSatisfy { $0.longestGap == .zero })
    }

    @Test("A clock set back while the store fails is repaired when the store works again")
    func storeFails() async throws {
        let fixture = try EngineFixture(seed: 43)
        try await fixture.add(0..<20)
        let engine = fixture.engine()
        await fixture.run(engine, for: .seconds(600), grain: .seconds(60))
        fixture.time.stepWallClock(by: .seconds(7200))
        await fixture.run(engine, for: .seconds(90), grain: .seconds(2))
        fixture.time.stepWallClock(by: .seconds(-7200))
        fixture.store.failReschedules(3)
        await fixture.run(engine, for: .seconds(150), grain: .seconds(2))
        let now = fixture.time.now
        #expect(try await fixture.grants().allSatisfy { $0.accessToken.map { $0.obtainedAt <= now } ?? false })
        #expect(fixture.lines.of("clock_step").count == 2)
    }

    @Test("A step whose repair was cut short is repaired by the next worker", arguments: [false, true])
    func diesDuringRepair(stopsInOrder: Bool) async throws {
        let fixture = try EngineFixture(seed: 44)
        fixture.time.stepWallClock(by: .seconds(3600))
        try await fixture.add(0..<20)
        let first = fixture.engine("first")
        await fixture.run(first, for: .seconds(600), grain: .seconds(5))
        await first.recordClock()
        fixture.time.stepWallClock(by: .seconds(-3600))
        fixture.store.failReschedules(1)
        let second = fixture.engine("second")
        await second.checkClock()
        if stopsInOrder { await second.recordClock() }
        let third = fixture.engine("third")
        await fixture.run(third, for: .seconds(90), grain: .seconds(2))
        let now = fixture.time.now
        #expect(try await fixture.grants().allSatisfy { $0.accessToken.map { $0.obtainedAt <= now } ?? false })
    }

    /// The fault lasts for 45 minutes, which is less than the longest doubt.
    @Test("A step of the clock during a wave ends no grant", arguments: [3600, -3600, 604_800, -604_800])
    func stepDuringWave(seconds: Int) async throws {
        let fixture = try EngineFixture(seed: 45)
        if seconds < 0 { fixture.time.stepWallClock(by: .seconds(-seconds)) }
        try await fixture.add(0..<100)
        let engine = fixture.engine()
        await fixture.run(engine, for: .seconds(2 * 3600), grain: .seconds(60))
        fixture.google.answer { _ in .answer(.invalidGrant) }
        await fixture.run(engine, for: .seconds(1200), grain: .seconds(5))
        let inDoubt = try await fixture.grants().filter(\.isInDoubt).count
        #expect(inDoubt > 10)
        fixture.time.stepWallClock(by: .seconds(seconds))
        await fixture.run(engine, for: .seconds(1500), grain: .seconds(5))
        #expect(try await fixture.grants().allSatisfy { $0.state.isConnected })
        fixture.google.answer { _ in .grant }
        await fixture.run(engine, for: .seconds(3600), grain: .seconds(30))
        #expect(try await fixture.states() == [.active: 100])
        #expect(fixture.google.accountsWithoutToken().isEmpty)
    }

    @Test("A step between two runs is detected by the second")
    func betweenRuns() async throws {
        let fixture = try EngineFixture(seed: 42)
        fixture.time.stepWallClock(by: .seconds(3600))
        try await fixture.add(0..<50)
        let first = fixture.engine("first")
        await fixture.run(first, for: .seconds(600), grain: .seconds(5))
        await first.recordClock()
        fixture.time.stepWallClock(by: .seconds(-3600))
        let second = fixture.engine("second")
        await fixture.run(second, for: .seconds(90), grain: .seconds(2))
        #expect(
            try await fixture.grants().allSatisfy { $0.accessToken.map { $0.obtainedAt <= fixture.time.now } ?? false }
        )
        await fixture.run(second, for: .seconds(2 * 3600), grain: .seconds(60))
        #expect(fixture.google.accounts.values.allSatisfy { $0.longestGap == .zero })
    }
}

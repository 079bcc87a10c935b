import GoogleOAuth
import Storage
import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import Scheduler

@Suite("The first answers after the start of a worker", .timeLimit(.minutes(10)))
struct CopySuspicionTests {
    @Test("If the first ten grants are refused, only one in five minutes is tried until one succeeds")
    func copiedDatabase() async throws {
        let fixture = try EngineFixture(seed: 70, rotates: true)
        try await fixture.add(0..<40)
        await fixture.run(fixture.engine("before"), for: .seconds(5))
        fixture.time.advance(by: .seconds(3600))
        let before = fixture.google.calls
        fixture.google.answer { _ in .answer(.invalidGrant) }
        let engine = fixture.engine("on a copy")
        await engine.daemonBegins(waitingSince: fixture.time.sinceBoot)
        await fixture.run(engine, for: .seconds(1000), grain: .seconds(2))
        #expect((10...13).contains(fixture.google.calls - before))
        #expect(fixture.lines.of("alarm").contains { $0["kind"] == "database_copy_suspected" })
        let grant = try await fixture.grant(0)
        #expect(await engine.state.waitsForFirstSuccess(grant))

        fixture.google.answer { _ in .grant }
        await fixture.run(engine, for: .seconds(3000), grain: .seconds(2))
        #expect(try await fixture.states() == [.active: 40])
        #expect(engine.currentAlarms.allSatisfy { $0.kind != .databaseCopySuspected })
    }

    @Test("A worker whose first grants are refused goes on after the first success")
    func oneSuccess() async throws {
        let fixture = try EngineFixture(seed: 71, rotates: true)
        try await fixture.add(0..<40)
        await fixture.run(fixture.engine("before"), for: .seconds(5))
        fixture.time.advance(by: .seconds(3600))
        let before = fixture.google.calls
        fixture.google.answer { $0.account % 2 == 0 ? .grant : .answer(.invalidGrant) }
        let engine = fixture.engine("after")
        await engine.daemonBegins(waitingSince: fixture.time.sinceBoot)
        await fixture.run(engine, for: .seconds(240), grain: .seconds(2))
        #expect(fixture.google.calls - before == 40)
    }

    @Test("A restart in a wave stops nothing: the grants that were in doubt before it say nothing about a copy")
    func confirmations() async throws {
        let fixture = try EngineFixture(seed: 72, rotates: true)
        try await fixture.add(0..<40)
        await fixture.run(fixture.engine("before"), for: .seconds(5))
        fixture.time.advance(by: .seconds(3600))
        fixture.google.answer { $0.account < 20 ? .answer(.invalidGrant) : .grant }
        await fixture.run(fixture.engine("in the wave"), for: .seconds(240), grain: .seconds(2))
        #expect(try await fixture.states() == [.retrying: 20, .active: 20])
        fixture.time.advance(by: .seconds(120))
        let engine = fixture.engine("after a restart")
        await engine.daemonBegins(waitingSince: fixture.time.sinceBoot)
        await fixture.run(engine, for: .seconds(60), grain: .seconds(2))
        #expect(engine.currentAlarms.allSatisfy { $0.kind != .databaseCopySuspected })
        let grant = try await fixture.grant(30)
        #expect(await !engine.state.waitsForFirstSuccess(grant))
    }
}

import GoogleOAuth
import Storage
import TestSupport
import Testing

@testable import Base
@testable import Scheduler

@Suite("One pass over the due grants", .timeLimit(.minutes(10)))
struct PassTests {
    private func sum(_ summary: PassSummary) -> Int {
        summary.refreshed + summary.retrying + summary.held + summary.suspended + summary.reauthRequired
            + summary.disconnected + summary.skipped
    }

    @Test("Every verdict is counted in its category, and the sum is the number of due grants")
    func sums() async throws {
        let fixture = try EngineFixture(seed: 70)
        try await fixture.add(0..<350)
        try await fixture.add(350..<400, dueIn: .seconds(1))
        fixture.google.answer { request in
            switch request.account % 7 {
            case 0: .answer(.invalidGrant)
            case 1: .answer(.signInRequired(code: "invalid_rapt"))
            case 2: .answer(.blocked(code: "policy_enforced"))
            case 3: .verdict(.flawed(code: "flawed_answer", rotated: nil))
            case 4: .answer(.unknown(code: "new"))
            default: .grant
            }
        }
        let summary = try await fixture.engine(maxRate: 100_000).runPass(within: .seconds(300))
        #expect(summary.due == 350)
        #expect(sum(summary) == 350)
        #expect(summary.refreshed == 100)
        #expect(summary.retrying == 100)
        #expect(summary.suspended == 50)
        #expect(summary.reauthRequired == 50)
        #expect(summary.disconnected == 50)
        #expect(summary.held == 0 && summary.skipped == 0)
        #expect(summary.leavesGrantsDue)
        #expect(fixture.google.accounts.values.allSatisfy { $0.requestTimes.count == 1 }, "one attempt each")
    }

    @Test("A pass waits for the grants that a full look finds, and reports a look that fails")
    func fullLook() async throws {
        let fixture = try EngineFixture(seed: 73)
        try await fixture.add(0..<150)
        fixture.store.hideGrants(lookFailsWith: .busy)
        let error = await #expect(throws: StoreError.self) {
            try await fixture.engine(maxRate: 100_000).runPass(within: .seconds(300))
        }
        #expect(error?.code == .busy)
        fixture.store.hideGrants()
        let summary = try await fixture.engine(maxRate: 100_000).runPass(within: .seconds(300))
        #expect(summary.due == 150 && summary.refreshed == 150)
    }

    @Test("After a final verdict for each grant no work remains, and a second pass finds none due")
    func final() async throws {
        let fixture = try EngineFixture(seed: 71)
        try await fixture.add(0..<30)
        fixture.google.answer { $0.account < 5 ? .answer(.invalidGrant) : .grant }
        let summary = try await fixture.engine(maxRate: 100_000).runPass(within: .seconds(300))
        #expect(summary.due == 30 && summary.refreshed == 25 && summary.disconnected == 5)
        #expect(!summary.leavesGrantsDue)
        let second = try await fixture.engine(maxRate: 100_000).runPass(within: .seconds(300))
        #expect(second == PassSummary())
        #expect(!second.leavesGrantsDue)
    }

    @Test("A confirmation is left for a later run")
    func held() async throws {
        let fixture = try EngineFixture(seed: 72, lifetime: .seconds(60))
        try await fixture.add(0..<60)
        _ = try await fixture.engine(maxRate: 100_000).runPass(within: .seconds(300))
        fixture.time.advance(by: .seconds(120))
        fixture.google.answer { _ in .answer(.invalidGrant) }
        let summary = try await fixture.engine(maxRate: 100_000).runPass(within: .seconds(300))
        #expect(summary.due == 60 && sum(summary) == 60)
        #expect(summary.held >= 20)
        #expect(summary.leavesGrantsDue)
        #expect(try await fixture.states() == [.retrying: 60], "grants that ended before the wave are recalled")
    }

    @Test("An open breaker allows one probe; the other grants are left for a later run", arguments: [true, false])
    func breakerOpen(isMended: Bool) async throws {
        let fixture = try EngineFixture(seed: 73)
        try await fixture.add(0..<50)
        fixture.google.answer { _ in .answer(.clientFault(code: "invalid_client")) }
        let first = try await fixture.engine(maxRate: 100_000).runPass(within: .seconds(300))
        #expect(first.due == 50 && first.retrying == 50 && first.leavesGrantsDue)
        let calls = fixture.google.calls
        #expect(calls <= 50)

        let closed = try await fixture.engine(maxRate: 100_000).runPass(within: .seconds(300))
        #expect(closed.due == 0 || fixture.google.calls == calls, "the breaker's first wait is not over")

        fixture.time.advance(by: .seconds(10))
        if isMended { fixture.google.answer { _ in .grant } }
        let second = try await fixture.engine(maxRate: 100_000).runPass(within: .seconds(300))
        #expect(second.due == 50 && sum(second) == 50)
        #expect(second.refreshed == (isMended ? 50 : 0))
        #expect(second.leavesGrantsDue == !isMended)
        #expect(fixture.google.calls == calls + (isMended ? 50 : 1))
    }

    @Test("A grant that another worker has is skipped, which is a final verdict")
    func claimedElsewhere() async throws {
        let fixture = try EngineFixture(seed: 74)
        try await fixture.add(0..<20)
        fixture.google.answer { _ in .hold }
        let daemon = fixture.engine("daemon")
        _ = await daemon.runLoopIteration()
        await fixture.google.waitUntilHolding(20)
        let summary = try await fixture.engine("cron").runPass(within: .seconds(300))
        #expect(summary.due == 20 && summary.skipped == 20)
        #expect(!summary.leavesGrantsDue)
        fixture.google.release()
        await daemon.waitUntilIdle()
        #expect(fixture.google.accounts.values.allSatisfy { $0.requestTimes.count == 1 })
    }

    @Test("A run whose time is over leaves the remaining grants")
    func timeIsUp() async throws {
        let fixture = try EngineFixture(seed: 75)
        try await fixture.add(0..<10)
        let summary = try await fixture.engine().runPass(within: .zero)
        #expect(summary.due == 10 && summary.retrying == 10)
        #expect(fixture.google.calls == 0)
    }
}

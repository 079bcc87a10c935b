import Storage
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import GoogleOAuth
@testable import Scheduler

@Suite("The number of refreshes in flight", .timeLimit(.minutes(10)))
struct InFlightTests {
    @Test("follows from the latency of successful refreshes, and not from immediate errors")
    func errors() async throws {
        let clock = Mutex<ManualTime?>(nil)
        let fixture = try RunningEngineFixture(maximumInFlight: 4_096) { client in
            guard client.id == "slow" else {
                return ParsedRefreshResponse(verdict: .failed(.throttled(code: "http_429")), status: 429)
            }
            clock.withLock { $0?.advance(by: .seconds(2)) }
            return .good
        }
        clock.withLock { $0 = fixture.time }
        try await fixture.add(1...1, of: "slow", overdueSince: .seconds(600))
        await fixture.runLoopIteration()
        let most = await fixture.engine.state.maximumInFlight
        #expect(most >= 800, "two hundred a second, two seconds each, twice over")
        for number in Int64(2)...21 {
            try await fixture.add(number...number, of: "throttled \(number)", overdueSince: .seconds(600))
        }
        await fixture.engine.storeChanged()
        await fixture.runLoopIteration()
        #expect(try await fixture.grant(21)?.failures == 1)
        #expect(await fixture.engine.state.maximumInFlight == most)
    }
}

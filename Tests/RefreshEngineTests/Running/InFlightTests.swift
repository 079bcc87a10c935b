import Clocks
import GoogleOAuth
import Store
import Synchronization
import Testing

@testable import RefreshEngine

@Suite("The number of requests in flight", .timeLimit(.minutes(10)))
struct InFlightTests {
    @Test("follows from the latency of successful refreshes, and not from immediate errors")
    func errors() async throws {
        let clock = Mutex<ManualTime?>(nil)
        let bench = try EngineBench(mostInFlight: 4_096) { client in
            guard client.id == "slow" else {
                return ParsedRefreshResponse(verdict: .throttled(code: "http_429"), status: 429)
            }
            clock.withLock { $0?.advance(by: .seconds(2)) }
            return .good
        }
        clock.withLock { $0 = bench.time }
        try await bench.add(1...1, of: "slow", overdueSince: .seconds(600))
        await bench.runLoopIteration()
        let most = await bench.engine.state.mostInFlight
        #expect(most >= 800, "two hundred a second, two seconds each, twice over")
        for number in Int64(2)...21 {
            try await bench.add(number...number, of: "throttled \(number)", overdueSince: .seconds(600))
        }
        await bench.engine.storeChanged()
        await bench.runLoopIteration()
        #expect(try await bench.grant(21)?.attempts == 1)
        #expect(await bench.engine.state.mostInFlight == most)
    }
}

import Scheduler
import SchedulerTestSupport
import Synchronization
import Testing

@testable import GoogleOAuth

/// Callers' requests respect the stored health of a client, which other workers share: each command is a process of its
/// own.
@Suite(.timeLimit(.minutes(10)))
struct CallerPaceTests {
    @Test(
        "a later process sends nothing while the client's breaker is open, or during a pause",
        arguments: [
            ("breaker_open", ParsedRefreshResponse(verdict: .failed(.clientFault(code: "invalid_client")))),
            (
                "throttled",
                ParsedRefreshResponse(verdict: .failed(.throttled(code: "http_429")), retryAfter: .seconds(300))
            ),
        ]
    )
    func laterProcess(reason: String, answer: ParsedRefreshResponse) async throws {
        let requestCount = Mutex(0)
        let fixture = try RunningEngineFixture { _ in
            requestCount.withLock { $0 += 1 }
            return answer
        }
        try await fixture.add(1...5, of: "client", overdueSince: .zero)
        for user in 1...5 {
            let engine = fixture.anotherEngine()
            await #expect(throws: VendingError.self) {
                try await engine.freshToken(of: "user \(user)", minimumLife: .zero)
            }
        }
        #expect(requestCount.withLock { $0 } == 1)
        await #expect(throws: VendingError.unavailable(reason: reason)) {
            try await fixture.engine.freshToken(of: "user 5", minimumLife: .zero)
        }
    }
}

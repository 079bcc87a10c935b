import Crypto
import Storage
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import GoogleOAuth
@testable import Scheduler

@Suite("A stop with unanswered requests", .timeLimit(.minutes(10)))
struct StopTests {
    @Test("A request that is unanswered at the stop deadline is cancelled, and its lease released")
    func deadline() async throws {
        let endpoint = SilentEndpoint()
        let fixture = try RunningEngineFixture(endpoint: endpoint)
        try await fixture.add(1...3, of: "client", overdueSince: .seconds(5))
        _ = await fixture.engine.runLoopIteration()
        #expect(endpoint.requestCount == 3)
        #expect(try await fixture.grant(1)?.lease != nil)

        #expect(await fixture.engine.stop(within: .milliseconds(1)) == UnstoredResults(), "nothing was lost")
        for number in 1...3 as ClosedRange<Int64> {
            let grant = try #require(try await fixture.grant(number))
            #expect(grant.lease == nil && grant.state == .active && grant.failures == 0)
            #expect(try #require(grant.dueAt) <= fixture.time.now, "it is due for the next worker")
        }
    }

    @Test("An answer that comes before the deadline is stored by the stop")
    func answer() async throws {
        let endpoint = SilentEndpoint()
        let fixture = try RunningEngineFixture(endpoint: endpoint)
        try await fixture.add(1...3, of: "client", overdueSince: .seconds(5))
        _ = await fixture.engine.runLoopIteration()
        async let left = fixture.engine.stop(within: .seconds(30))
        endpoint.answerAll(with: .good)
        #expect(await left == UnstoredResults())
        for number in 1...3 as ClosedRange<Int64> {
            let grant = try #require(try await fixture.grant(number))
            #expect(grant.lease == nil && grant.accessToken != nil)
        }
    }
}

/// An endpoint that never answers by itself; a cancelled request ends as not sent.
private final class SilentEndpoint: PartialGoogle {
    private let requests = Mutex<[RefreshSubmission]>([])

    var requestCount: Int { requests.withLock { $0.count } }

    func refresh(_ requests: [RefreshSubmission]) -> [@Sendable () -> Void] {
        self.requests.withLock { $0 += requests }
        return requests.map { request in
            { request.receive(.read(ParsedRefreshResponse(verdict: .failed(.notSent(code: "cancelled"))))) }
        }
    }

    func answerAll(with answer: ParsedRefreshResponse) {
        for request in requests.withLock({ $0 }) { request.receive(.read(answer)) }
    }
}

import Storage
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import GoogleOAuth

/// Failures of one client do not affect another.
@Suite(.timeLimit(.minutes(10)))
struct FairnessTests {
    @Test("a refused client's overdue grants, more than a scan reads, do not hide those of others")
    func hiddenBehindABrokenClient() async throws {
        let fixture = try RunningEngineFixture { client in
            client.id == "broken"
                ? ParsedRefreshResponse(verdict: .failed(.clientFault(code: "deleted_client"))) : .good
        }
        try await fixture.add(1...20_500, of: "broken", overdueSince: .seconds(600))
        try await fixture.add(30_001...30_003, of: "well", overdueSince: .seconds(1))
        for _ in 0..<3 {
            await fixture.runLoopIteration()
            fixture.time.advance(by: .seconds(2))
        }
        for number in Int64(30_001)...30_003 {
            #expect(try await fixture.grant(number)?.lastSuccessAt != nil, "grant \(number) was never refreshed")
        }
    }

    @Test("a client with a long queue does not take every slot")
    func oneSlotForTwo() async throws {
        let sent = Mutex<[String]>([])
        let fixture = try RunningEngineFixture(maximumInFlight: 1) { client in
            sent.withLock { $0.append(client.id) }
            return .good
        }
        try await fixture.add(1...20, of: "a", overdueSince: .seconds(600))
        try await fixture.add(21...22, of: "b", overdueSince: .seconds(600))
        for _ in 0..<4 { await fixture.runLoopIteration() }
        #expect(sent.withLock { $0 }.contains("b"), "the other client was never served: \(sent.withLock { $0 })")
    }

    @Test("a long backlog goes out in the order in which it fell due")
    func expiredFirst() async throws {
        let fixture = try RunningEngineFixture(maximumInFlight: 512) { _ in .good }
        // The lower the number of a grant, the earlier it was due.
        for hundred in Int64(0)..<120 {
            let numbers = hundred * 100 + 1...hundred * 100 + 100
            try await fixture.add(numbers, of: "client", overdueSince: .seconds(6000 - hundred))
        }
        while try await fixture.grant(6000)?.lastSuccessAt == nil {
            await fixture.runLoopIteration()
            fixture.time.advance(by: .milliseconds(500))
        }
        let early = try await fixture.store.grants(after: GrantID(rawValue: 8000), in: nil, atMost: .max)
            .filter { $0.lastSuccessAt != nil }
        #expect(early.isEmpty, "\(early.count) went before those that were due earlier")
    }
}

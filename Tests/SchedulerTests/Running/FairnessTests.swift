import Storage
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import GoogleOAuth
@testable import Scheduler

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

    @Test("a client's backlog and a store that takes 12 ms for a claim hold up neither the loop nor another client")
    func slowClaims() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<2_000)
        try await fixture.add(5_000..<5_001, of: "other", dueIn: .milliseconds(200))
        let (time, start) = (fixture.time, fixture.time.sinceBoot)
        fixture.store.beforeClaim { _ in time.advance(by: .milliseconds(12)) }
        let engine = fixture.engine(scanInterval: .seconds(2))
        var longest = Duration.zero
        while time.sinceBoot - start < .seconds(3) {
            let begin = time.sinceBoot
            let next = await engine.runLoopIteration()
            longest = max(longest, time.sinceBoot - begin)
            await engine.waitUntilIdle()
            time.advance(by: max(.milliseconds(1), min(next - time.now, .milliseconds(50))))
        }
        #expect(longest <= .milliseconds(24), "one claim for each client")
        let sentAt = try #require(fixture.google.account(5_000).requestTimes.first)
        #expect(sentAt - start <= .milliseconds(200) + RefreshEngineState.gatheringTime + .milliseconds(24))
        #expect(fixture.google.calls >= 500, "the pace is used: 200 a second")
        #expect(fixture.store.claims <= 3_000 / 75 + 20, "small claims wait for more grants")
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

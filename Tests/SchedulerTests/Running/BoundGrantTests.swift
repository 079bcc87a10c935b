import GoogleOAuth
import Scheduler
import Storage
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import Crypto

@Suite("A grant whose token is bound to a key", .timeLimit(.minutes(10)))
struct BoundGrantTests {
    /// Records the key of each refresh, and answers with a rotated token.
    private final class Endpoint: PartialGoogle {
        private let sent = Mutex<[KeyID?]>([])

        var keys: [KeyID?] { sent.withLock(\.self) }

        func refresh(_ submissions: [RefreshSubmission]) -> [@Sendable () -> Void] {
            for submission in submissions {
                sent.withLock { $0.append(submission.bindingKey?.id) }
                var answer = ParsedRefreshResponse.good
                guard case .granted(var tokens) = answer.verdict else { continue }
                tokens.rotated = Secret("rotated")
                answer.verdict = .granted(tokens)
                submission.receive(.read(answer))
            }
            return submissions.map { _ in {} }
        }
    }

    @Test("is refreshed with that key, and the token that replaces its own is bound to it too")
    func refreshed() async throws {
        let (endpoint, key) = (Endpoint(), try RingKey.randomBinding())
        let fixture = try RunningEngineFixture(bindingKey: key, endpoint: endpoint)
        try await fixture.add(1...1, of: "client", overdueSince: .seconds(60), boundTo: key.id)
        await fixture.runLoopIteration()
        #expect(endpoint.keys == [key.id])
        let grant = try #require(try await fixture.grant(1))
        #expect(grant.generation == 2)
        #expect(grant.refreshToken?.bindingKeyID == key.id)
        #expect(try fixture.vault.openRefreshToken(of: grant) == Secret("rotated"))
    }

    @Test("does not bind others: they are refreshed without a key")
    func unbound() async throws {
        let endpoint = Endpoint()
        let fixture = try RunningEngineFixture(bindingKey: RingKey.randomBinding(), endpoint: endpoint)
        try await fixture.add(1...1, of: "client", overdueSince: .seconds(60))
        await fixture.runLoopIteration()
        #expect(endpoint.keys == [nil])
        #expect(try await fixture.grant(1)?.refreshToken?.bindingKeyID == nil)
    }

    @Test("stays as it is while another worker may have the key")
    func keyElsewhere() async throws {
        let endpoint = Endpoint()
        let fixture = try RunningEngineFixture(endpoint: endpoint)
        let missing = try #require(KeyID("0000000b"))
        try await fixture.add(1...1, of: "client", overdueSince: .seconds(60), boundTo: missing)
        let before = try #require(try await fixture.grant(1))
        await fixture.runLoopIteration()
        #expect(endpoint.keys.isEmpty, "the token was sent without a proof")
        let after = try #require(try await fixture.grant(1))
        #expect(after.dueAt == before.dueAt && after.failures == 0 && after.lease == nil)
        #expect(fixture.vault.ring.missingKeys == [missing])
    }

    @Test("whose key no worker has is tried again later, and does not end")
    func keyLost() async throws {
        let endpoint = Endpoint()
        let fixture = try RunningEngineFixture(endpoint: endpoint)
        let lost = try #require(KeyID("0000000b"))
        try await fixture.add(1...1, of: "client", overdueSince: .seconds(60), boundTo: lost)
        fixture.vault.ring.resolveMissingKeys(lost: [lost])
        await fixture.runLoopIteration()
        #expect(endpoint.keys.isEmpty)
        let grant = try #require(try await fixture.grant(1))
        #expect(grant.state == .active)
        #expect(try #require(grant.dueAt) > fixture.time.now)
    }
}

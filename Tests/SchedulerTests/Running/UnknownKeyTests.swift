import GoogleOAuth
import Storage
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import Crypto

@Suite("A token whose key the ring lacks", .timeLimit(.minutes(10)))
struct UnknownKeyTests {
    @Test("stays as it is while another worker may have the key, and nothing else is claimed")
    func doubt() async throws {
        let sent = Mutex(0)
        let fixture = try RunningEngineFixture { _ in
            sent.withLock { $0 += 1 }
            return .good
        }
        try await fixture.add(1...1, of: "client", overdueSince: .seconds(60), sealedBy: try otherVault())
        let before = try #require(try await fixture.grant(1))
        await fixture.runLoopIteration()
        let after = try #require(try await fixture.grant(1))
        #expect(after.dueAt == before.dueAt, "the grant was postponed")
        #expect(after.failures == 0)
        #expect(after.lease == nil)
        #expect(!fixture.vault.ring.isComplete)

        try await fixture.add(2...2, of: "client", overdueSince: .seconds(60))
        fixture.time.advance(by: .seconds(2))
        await fixture.runLoopIteration()
        #expect(sent.withLock { $0 } == 0, "a worker that may lack a key refreshed")

        fixture.vault.ring.resolveMissingKeys(lost: [])
        fixture.vault.ring.standbyReason = "the ring lacks a key"
        fixture.time.advance(by: .seconds(2))
        await fixture.runLoopIteration()
        #expect(sent.withLock { $0 } == 0, "a worker that stands by refreshed")
        #expect(try await fixture.grant(1)?.dueAt == before.dueAt)
    }

    @Test("is postponed, and others are not, when no worker has the key")
    func lost() async throws {
        let fixture = try RunningEngineFixture { _ in .good }
        let other = try otherVault()
        try await fixture.add(1...1, of: "client", overdueSince: .seconds(60), sealedBy: other)
        try await fixture.add(2...2, of: "client", overdueSince: .seconds(60))
        fixture.vault.ring.resolveMissingKeys(lost: [other.ring.current.sealingKeyID])
        await fixture.runLoopIteration()
        let grant = try #require(try await fixture.grant(1))
        #expect(try #require(grant.dueAt) > fixture.time.now)
        #expect(try await fixture.grant(2)?.lastSuccessAt != nil)
    }

    private func otherVault() throws -> TokenVault {
        let ring = try KeyRing(keys: [.random()])
        return TokenVault(ring: try ReloadableKeyRing { ring })
    }
}

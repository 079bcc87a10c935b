import Crypto
import GoogleOAuth
import TestSupport
import Testing

@testable import Base
@testable import Scheduler
@testable import Storage

@Suite("Changes of a grant around its revocation at Google", .timeLimit(.minutes(10)))
struct RevocationTests {
    private static let owner = Grant.Owner(googleUserID: "g-1", email: "jane@gmail.com")

    /// Stores the tokens of a new sign-in with the account.
    private static func reconnect(_ account: Int, in fixture: EngineFixture) async throws {
        let now = fixture.time.now
        let id = try await fixture.grant(account).id
        var incoming = IncomingTokens(clientID: EngineFixture.clientID, owner: owner)
        incoming.refreshToken = try fixture.refreshToken(account, version: 5, for: id)
        incoming.accessToken = Grant.AccessToken(
            sealed: try fixture.vault.seal(accessToken: Secret("from the app"), for: id),
            obtainedAt: now,
            expiresAt: now + .seconds(3600)
        )
        try await fixture.change(account) { [incoming] grant in
            grant.reconnect(
                incoming,
                replacesRefreshToken: true,
                switchesAccount: true,
                dueAt: now + .seconds(3000),
                at: now
            )
        }
    }

    private static func disconnect(_ account: Int, in fixture: EngineFixture) async throws {
        let now = fixture.time.now
        try await fixture.change(account) { grant in
            grant.owner = owner
            return grant.disconnectByRequest(revokes: true, at: now)
        }
    }

    @Test("A revocation is not sent if the user has connected again since it was claimed")
    func reconnectBeforeSending() async throws {
        let gate = Gate()
        let fixture = try EngineFixture()
        fixture.store.beforeTransaction { await gate.pass() }
        try await fixture.add(0..<1)
        try await Self.disconnect(0, in: fixture)
        let engine = fixture.engine()
        _ = await engine.runLoopIteration()
        await gate.waitForCaller()
        try await Self.reconnect(0, in: fixture)
        gate.open()
        await engine.waitUntilIdle()
        #expect(fixture.google.revoked.isEmpty)
        let grant = try await fixture.grant(0)
        #expect(grant.state == .active && grant.lease == nil)
        #expect(try fixture.vault.openRefreshToken(of: grant)?.reveal() == "refresh-0-5")
    }

    @Test("Grants that a revocation in flight has ended show as disconnected at once")
    func reconnectDuringRevocation() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        try await fixture.add(1..<2, dueIn: .seconds(3000))
        try await Self.disconnect(0, in: fixture)
        fixture.google.duringRevocation {
            do {
                try await Self.reconnect(0, in: fixture)
                try await fixture.change(1) { grant in
                    grant.owner = Self.owner
                    return []
                }
            } catch {
                Issue.record(error)
            }
        }
        fixture.google.answer { _ in .answer(.invalidGrant) }
        await fixture.run(fixture.engine(scanInterval: .seconds(2)), for: .seconds(10))
        #expect(fixture.google.revoked == ["refresh-0-0"])
        for account in 0...1 {
            let grant = try await fixture.grant(account)
            #expect(grant.state == .disconnected && grant.reason == .invalidGrant, "account \(account)")
        }
    }

    @Test("Grants that a revocation in flight did not end stay connected")
    func harmlessRevocation() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        try await Self.disconnect(0, in: fixture)
        fixture.google.duringRevocation {
            do { try await Self.reconnect(0, in: fixture) } catch { Issue.record(error) }
        }
        await fixture.run(fixture.engine(), for: .seconds(10))
        #expect(try await fixture.grant(0).state == .active)
        #expect(fixture.google.account(0).requestTimes.count == 1)
    }

    @Test("A disconnect during a refresh revokes the token that the server rotated to", arguments: [true, false])
    func disconnectDuringRotation(isLate: Bool) async throws {
        let fixture = try EngineFixture(rotates: true)
        try await fixture.add(0..<1)
        let engine = fixture.engine()
        fixture.google.answer { _ in .hold }
        _ = await engine.runLoopIteration()
        await fixture.google.waitUntilHolding(1)
        try await Self.disconnect(0, in: fixture)
        if isLate {
            // The lease runs out, and another worker revokes the token that it finds.
            fixture.time.advance(by: .seconds(31))
            await fixture.run(fixture.engine("other"), for: .seconds(5))
            #expect(try await fixture.grant(0).refreshToken == nil)
        }
        fixture.google.release()
        await engine.waitUntilIdle()
        await fixture.run(engine, for: .seconds(65))
        #expect(fixture.google.revoked.last == "refresh-0-1")
        let grant = try await fixture.grant(0)
        #expect(grant.state == .disconnected && grant.reason == .userRequest)
        #expect(grant.refreshToken == nil && grant.accessToken == nil && grant.dueAt == nil)
    }
}

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
                discardsStored: true,
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

    /// Stores revocations that are due before the refreshes of other accounts.
    private static func add(revocations: Range<Int>, refreshes: Range<Int>, to fixture: EngineFixture) async throws {
        try await fixture.add(revocations)
        for account in revocations {
            let now = fixture.time.now
            try await fixture.change(account) { $0.disconnectByRequest(revokes: true, at: now) }
        }
        fixture.time.advance(by: .seconds(1))
        try await fixture.add(refreshes)
    }

    @Test("Revocations that hang, however many, delay no refresh, and all go out once the endpoint responds")
    func hangingRevocations() async throws {
        let gate = Gate()
        let fixture = try EngineFixture()
        try await Self.add(revocations: 0..<300, refreshes: 300..<340, to: fixture)
        let revocations = Set(try await fixture.grants().filter { $0.revocationAskedAt != nil }.map(\.id))
        fixture.google.duringRevocation { await gate.pass() }
        let engine = fixture.engine(scanInterval: .seconds(2))
        await engine.daemonBegins(waitingSince: fixture.time.sinceBoot)
        let began = fixture.time.sinceBoot
        while fixture.google.calls < 40, fixture.time.sinceBoot - began < .seconds(10) {
            _ = await engine.runLoopIteration()
            await engine.waitUntilIdle(except: revocations)
            fixture.time.advance(by: .milliseconds(100))
        }
        #expect(fixture.google.calls == 40)
        #expect(fixture.google.revoked.count == 16, "a quarter of the requests in flight")
        gate.open()
        await fixture.run(engine, for: .seconds(10))
        #expect(fixture.google.revoked.count == 300 && Set(fixture.google.revoked).count == 300, "each is sent once")
        #expect(try await fixture.grants().allSatisfy { $0.revocationAskedAt == nil })
    }

    @Test("A pass makes all refreshes although revocations hang, and then sends these")
    func hangingRevocationsInPass() async throws {
        let gate = Gate()
        let fixture = try EngineFixture()
        try await Self.add(revocations: 0..<150, refreshes: 150..<160, to: fixture)
        fixture.google.duringRevocation { await gate.pass() }
        fixture.google.answer { request in
            if request.account == 159 { gate.open() }
            return .grant
        }
        let summary = try await fixture.engine(maxRate: 100_000).runPass(within: .seconds(300))
        #expect(summary.due == 160 && summary.refreshed == 10)
        #expect(fixture.google.revoked.count == 150)
        #expect(try await fixture.grants().allSatisfy { $0.revocationAskedAt == nil })
    }
}

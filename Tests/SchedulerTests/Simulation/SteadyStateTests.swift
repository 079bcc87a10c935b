import Crypto
import GoogleOAuth
import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("Simulated days", .timeLimit(.minutes(10)))
struct SteadyStateTests {
    @Test("A thousand grants for twelve hours: always a good token, and only the scheduled calls")
    func twelveHours() async throws {
        let fixture = try EngineFixture(seed: 20)
        try await fixture.add(0..<1000)
        let engine = fixture.engine(maxRate: 10_000)
        await fixture.run(engine, for: .seconds(12 * 3600), grain: .seconds(120))

        for grant in try await fixture.grants() {
            #expect(grant.state == .active)
        }
        for (number, account) in fixture.google.accounts {
            #expect(account.longestGap == .zero, "account \(number)")
            #expect(account.maximumInFlight == 1)
            // At once, at its first home instant 300 to 3,300 s later, and then every 3,000 s, apart from the grain.
            #expect(
                (15...16).contains(account.requestTimes.count),
                "account \(number): \(account.requestTimes.count) calls"
            )
            let waits = zip(account.requestTimes.dropFirst(), account.requestTimes).map { $0 - $1 }
            #expect(waits[0] >= .seconds(299) && waits[0] <= .seconds(3421), "account \(number)")
            #expect(waits.dropFirst().allSatisfy { abs($0.inSeconds - 3000) <= 121 }, "account \(number)")
        }
        #expect(fixture.google.accounts.count == 1000)
        #expect(fixture.google.accountsWithoutToken().isEmpty)
        #expect(try await fixture.accountsWithLostToken().isEmpty)
        #expect(fixture.lines.of("alarm").isEmpty)
        #expect(fixture.lines.of("state").isEmpty)
    }

    @Test("Rotation: the stored token is always the newest one")
    func rotation() async throws {
        let fixture = try EngineFixture(seed: 21, rotates: true)
        try await fixture.add(0..<50)
        let engine = fixture.engine()
        await fixture.run(engine, for: .seconds(6 * 3600), grain: .seconds(60))
        for number in 0..<50 {
            let grant = try await fixture.grant(number)
            let calls = fixture.google.account(number).requestTimes.count
            #expect(try fixture.vault.openRefreshToken(of: grant)?.reveal() == "refresh-\(number)-\(calls)")
            #expect(grant.generation == Int64(1 + calls))
            #expect(grant.state == .active)
        }
    }

    @Test("A grant without a refresh token causes no request, and ends with its access token")
    func noRefreshToken() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        let token = try Sample.accessToken(lifetime: .seconds(600))
        try await fixture.change(0) { grant in
            grant.reconnect(
                IncomingTokens(clientID: EngineFixture.clientID, accessToken: token),
                replacesRefreshToken: true,
                discardsStored: false,
                dueAt: token.expiresAt,
                at: start
            )
        }
        let engine = fixture.engine()
        await fixture.run(engine, for: .seconds(590), grain: .seconds(5))
        #expect(try await fixture.grant(0).state == .active)
        await fixture.run(engine, for: .seconds(20))
        let grant = try await fixture.grant(0)
        #expect(grant.state == .reauthRequired && grant.reason == .noRefreshToken)
        #expect(fixture.google.calls == 0)
    }

    @Test("A requested revocation is sent to Google, then the tokens are deleted")
    func revocation() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        let engine = fixture.engine()
        await fixture.run(engine, for: .seconds(5))
        fixture.google.failRevocations(with: .unavailable(code: "connect"))
        try await fixture.change(0) { $0.disconnectByRequest(revokes: true, at: start + .seconds(5)) }
        await fixture.run(engine, for: .seconds(120), grain: .seconds(1))
        #expect(try await fixture.grant(0).refreshToken != nil)
        fixture.google.failRevocations(with: nil)
        await fixture.run(engine, for: .seconds(700), grain: .seconds(5))
        let grant = try await fixture.grant(0)
        #expect(grant.refreshToken == nil && grant.accessToken == nil && grant.dueAt == nil)
        #expect(grant.state == .disconnected && grant.reason == .userRequest)
        #expect(Set(fixture.google.revoked) == ["refresh-0-0"])
        #expect(fixture.google.calls == 1)
    }

    @Test("A revocation that is not sent yet is dropped if any user connects its account again")
    func overtakenRevocation() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1, dueIn: .seconds(3000))
        let engine = fixture.engine()
        try await fixture.change(0) { grant in
            _ = grant.reconnect(
                IncomingTokens(
                    clientID: EngineFixture.clientID,
                    owner: Grant.Owner(googleUserID: "1001", email: "ada@gmail.com")
                ),
                replacesRefreshToken: false,
                discardsStored: false,
                dueAt: grant.dueAt,
                at: start
            )
            return grant.disconnectByRequest(revokes: true, reason: .userDeleted, at: start)
        }
        fixture.google.failRevocations(with: .unavailable(code: "connect"))
        await fixture.run(engine, for: .seconds(5))
        let tries = fixture.google.revoked.count
        #expect(tries > 0)

        fixture.google.failRevocations(with: nil)
        try await fixture.add(1..<2, dueIn: .seconds(3000))
        try await fixture.change(1) { grant in
            grant.reconnect(
                IncomingTokens(
                    clientID: EngineFixture.clientID,
                    owner: Grant.Owner(googleUserID: "1001", email: "ada@gmail.com")
                ),
                replacesRefreshToken: false,
                discardsStored: false,
                dueAt: grant.dueAt,
                at: fixture.time.now
            )
        }
        await fixture.run(engine, for: .seconds(700), grain: .seconds(5))
        #expect(fixture.google.revoked.count == tries, "a revocation would have ended the new grant too")
        let former = try await fixture.grant(0)
        #expect(former.refreshToken == nil && former.revocationAskedAt == nil && former.owner == Grant.Owner())
        #expect(try await fixture.grant(1).refreshToken != nil)
    }
}

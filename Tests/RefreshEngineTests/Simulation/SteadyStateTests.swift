import Clocks
import GoogleOAuth
import Secrets
import Store
import Testing

@Suite("Simulated days", .timeLimit(.minutes(10)))
struct SteadyStateTests {
    @Test("A thousand grants for twelve hours: always a good token, and only the scheduled calls")
    func twelveHours() async throws {
        let world = try World(seed: 20)
        try await world.add(0..<1000)
        let engine = world.engine(maxRate: 10_000)
        await world.run(engine, for: .seconds(12 * 3600), grain: .seconds(120))

        for grant in try await world.grants() {
            #expect(grant.state == .active)
        }
        for (number, account) in world.google.accounts {
            #expect(account.longestGap == .zero, "account \(number)")
            #expect(account.mostInFlight == 1)
            // At once, at its first home instant 300 to 3,300 s later, and then every 3,000 s, apart from the grain.
            #expect((15...16).contains(account.asked.count), "account \(number): \(account.asked.count) calls")
            let waits = zip(account.asked.dropFirst(), account.asked).map { $0 - $1 }
            #expect(waits[0] >= .seconds(299) && waits[0] <= .seconds(3421), "account \(number)")
            #expect(waits.dropFirst().allSatisfy { abs($0.inSeconds - 3000) <= 121 }, "account \(number)")
        }
        #expect(world.google.accounts.count == 1000)
        #expect(world.google.accountsWithoutToken().isEmpty)
        #expect(try await world.accountsWithLostToken().isEmpty)
        #expect(world.lines.of("alarm").isEmpty)
        #expect(world.lines.of("state").isEmpty)
    }

    @Test("Rotation: the stored token is always the newest one")
    func rotation() async throws {
        let world = try World(seed: 21, rotates: true)
        try await world.add(0..<50)
        let engine = world.engine()
        await world.run(engine, for: .seconds(6 * 3600), grain: .seconds(60))
        for number in 0..<50 {
            let grant = try await world.grant(number)
            let calls = world.google.account(number).asked.count
            #expect(try world.vault.openRefreshToken(of: grant)?.reveal() == "refresh-\(number)-\(calls)")
            #expect(grant.generation == Int64(1 + calls))
            #expect(grant.state == .active)
        }
    }

    @Test("A grant without a refresh token causes no request, and ends with its access token")
    func noRefreshToken() async throws {
        let world = try World()
        try await world.add(0..<1)
        let token = try Sample.accessToken(lifetime: .seconds(600))
        try await world.change(0) { grant in
            grant.reconnect(
                IncomingTokens(clientID: World.clientID, accessToken: token),
                bringsOtherRefreshToken: true,
                switchesAccount: false,
                dueAt: token.expiresAt,
                at: start
            )
        }
        let engine = world.engine()
        await world.run(engine, for: .seconds(590), grain: .seconds(5))
        #expect(try await world.grant(0).state == .active)
        await world.run(engine, for: .seconds(20))
        let grant = try await world.grant(0)
        #expect(grant.state == .reauthRequired && grant.reason == .noRefreshToken)
        #expect(world.google.calls == 0)
    }

    @Test("A requested revocation is sent to Google, then the tokens are deleted")
    func revocation() async throws {
        let world = try World()
        try await world.add(0..<1)
        let engine = world.engine()
        await world.run(engine, for: .seconds(5))
        world.google.failRevocations(with: .unavailable(code: "connect"))
        try await world.change(0) { $0.disconnectByRequest(revokes: true, at: start + .seconds(5)) }
        await world.run(engine, for: .seconds(120), grain: .seconds(1))
        #expect(try await world.grant(0).refreshToken != nil)
        world.google.failRevocations(with: nil)
        await world.run(engine, for: .seconds(700), grain: .seconds(5))
        let grant = try await world.grant(0)
        #expect(grant.refreshToken == nil && grant.accessToken == nil && grant.dueAt == nil)
        #expect(grant.state == .disconnected && grant.reason == .userRequest)
        #expect(Set(world.google.revoked) == ["refresh-0-0"])
        #expect(world.google.calls == 1)
    }

    @Test("A revocation that is not sent yet is dropped if any user connects its account again")
    func overtakenRevocation() async throws {
        let world = try World()
        try await world.add(0..<1, dueIn: .seconds(3000))
        let engine = world.engine()
        try await world.change(0) { grant in
            _ = grant.reconnect(
                IncomingTokens(
                    clientID: World.clientID,
                    owner: Grant.Owner(googleUserID: "1001", email: "ada@gmail.com")
                ),
                bringsOtherRefreshToken: false,
                switchesAccount: false,
                dueAt: grant.dueAt,
                at: start
            )
            return grant.disconnectByRequest(revokes: true, reason: .userDeleted, at: start)
        }
        world.google.failRevocations(with: .unavailable(code: "connect"))
        await world.run(engine, for: .seconds(5))
        let tries = world.google.revoked.count
        #expect(tries > 0)

        world.google.failRevocations(with: nil)
        try await world.add(1..<2, dueIn: .seconds(3000))
        try await world.change(1) { grant in
            grant.reconnect(
                IncomingTokens(
                    clientID: World.clientID,
                    owner: Grant.Owner(googleUserID: "1001", email: "ada@gmail.com")
                ),
                bringsOtherRefreshToken: false,
                switchesAccount: false,
                dueAt: grant.dueAt,
                at: world.time.now
            )
        }
        await world.run(engine, for: .seconds(700), grain: .seconds(5))
        #expect(world.google.revoked.count == tries, "a revocation would have ended the new grant too")
        let former = try await world.grant(0)
        #expect(former.refreshToken == nil && former.revocationAskedAt == nil && former.owner == Grant.Owner())
        #expect(try await world.grant(1).refreshToken != nil)
    }
}

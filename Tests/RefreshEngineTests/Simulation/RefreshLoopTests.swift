import Clocks
import RefreshEngine
import Secrets
import Store
import Testing

@Suite("A successful refresh never causes the next one at once", .timeLimit(.minutes(10)))
struct RefreshLoopTests {
    @Test("Tokens with a shorter life than the first one are refreshed once per period")
    func shorterLifetimes() async throws {
        let world = try World(seed: 60)
        try await world.add(0..<5)
        world.google.answer { .grantFor($0.count == 1 ? .seconds(300) : .seconds(30)) }
        let engine = world.engine(scanInterval: .seconds(2))
        await world.run(engine, for: .seconds(300))
        // A token of 30 s is refreshed about every 20 s.
        #expect(world.google.calls <= 5 * 18, "\(world.google.calls) calls")
        #expect(world.google.accounts.values.allSatisfy { $0.longestGap == .zero })
        #expect(try await world.accountsWithLostToken().isEmpty)
        #expect(world.lines.of("alarm").isEmpty)
    }

    @Test("An access token that was imported with an expiry days ahead is replaced by the first refresh")
    func importedExpiry() async throws {
        let world = try World(seed: 61)
        try await world.add(0..<20)
        let expiry = world.time.now + .seconds(3 * 86_400)
        for account in 0..<20 {
            let id = try await world.grant(account).id
            let token = Grant.AccessToken(
                sealed: try world.vault.seal(accessToken: Secret("imported"), for: id),
                obtainedAt: world.time.now,
                expiresAt: expiry
            )
            let now = world.time.now
            try await world.change(account) { grant in
                grant.reconnect(
                    IncomingTokens(clientID: World.clientID, accessToken: token),
                    bringsOtherRefreshToken: false,
                    switchesAccount: false,
                    dueAt: now,
                    at: now
                )
            }
        }
        await world.run(world.engine(), for: .seconds(600), grain: .seconds(1))
        #expect(world.google.calls <= 40, "\(world.google.calls) calls")
        #expect(try await world.accountsWithLostToken().isEmpty)
    }

    @Test("A caller whose token was rejected gets another one, however long the rejected one claims to live")
    func rejectedTokenIsReplaced() async throws {
        let world = try World(seed: 62)
        try await world.add(0..<1)
        let provider = TokenProvider(store: world.store, vault: world.vault, engine: world.engine(), time: world.time)
        world.google.answer { .grantFor($0.count == 1 ? .seconds(7200) : .seconds(600)) }
        let first = try await provider.token(of: world.grant(0), minimumLife: .zero)
        world.time.advance(by: .seconds(60))
        let second = try await provider.renewedToken(of: world.grant(0), insteadOf: first.accessToken)
        #expect(second.accessToken != first.accessToken)
        #expect(second.accessToken.reveal() == world.google.account(0).accessToken)
    }

    @Test("With any lifetimes in any order, each grant is refreshed at most twice a second")
    func anyLifetimes() async throws {
        for seed in [63, 64, 65] as [UInt64] {
            let world = try World(seed: seed)
            try await world.add(0..<10)
            let lifetimes: [Duration] = [.seconds(1), .seconds(7), .seconds(30), .seconds(300), .seconds(3600)]
            world.google.answer { asked in
                let draw = SeededRandom(seed: seed << 32 + UInt64(asked.account << 16 + asked.count)).nextBits()
                return .grantFor(lifetimes[Int(draw % UInt64(lifetimes.count))])
            }
            await world.run(world.engine(scanInterval: .seconds(2)), for: .seconds(600))
            for (number, account) in world.google.accounts {
                let waits = zip(account.asked.dropFirst(), account.asked).map { $0 - $1 }
                #expect(waits.allSatisfy { $0 >= .milliseconds(500) }, "seed \(seed), account \(number)")
            }
            #expect(try await world.accountsWithLostToken().isEmpty, "seed \(seed)")
        }
    }
}

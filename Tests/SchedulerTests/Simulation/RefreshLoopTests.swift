import Crypto
import Scheduler
import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("A successful refresh never causes the next one at once", .timeLimit(.minutes(10)))
struct RefreshLoopTests {
    @Test("Tokens with a shorter life than the first one are refreshed once per period")
    func shorterLifetimes() async throws {
        let fixture = try EngineFixture(seed: 60)
        try await fixture.add(0..<5)
        fixture.google.answer { .grantFor($0.count == 1 ? .seconds(300) : .seconds(30)) }
        let engine = fixture.engine(scanInterval: .seconds(2))
        await fixture.run(engine, for: .seconds(300))
        // A token of 30 s is refreshed about every 20 s.
        #expect(fixture.google.calls <= 5 * 18, "\(fixture.google.calls) calls")
        #expect(fixture.google.accounts.values.allSatisfy { $0.longestGap == .zero })
        #expect(try await fixture.accountsWithLostToken().isEmpty)
        #expect(fixture.lines.of("alarm").isEmpty)
    }

    @Test("An access token that was imported with an expiry days ahead is replaced by the first refresh")
    func importedExpiry() async throws {
        let fixture = try EngineFixture(seed: 61)
        try await fixture.add(0..<20)
        let expiry = fixture.time.now + .seconds(3 * 86_400)
        for account in 0..<20 {
            let id = try await fixture.grant(account).id
            let token = Grant.AccessToken(
                sealed: try fixture.vault.seal(accessToken: Secret("imported"), for: id),
                obtainedAt: fixture.time.now,
                expiresAt: expiry
            )
            let now = fixture.time.now
            try await fixture.change(account) { grant in
                grant.reconnect(
                    IncomingTokens(clientID: EngineFixture.clientID, accessToken: token),
                    replacesRefreshToken: false,
                    discardsStored: false,
                    dueAt: now,
                    at: now
                )
            }
        }
        await fixture.run(fixture.engine(), for: .seconds(600), grain: .seconds(1))
        #expect(fixture.google.calls <= 40, "\(fixture.google.calls) calls")
        #expect(try await fixture.accountsWithLostToken().isEmpty)
    }

    @Test("A caller whose token was rejected gets another one, however long the rejected one claims to live")
    func rejectedTokenIsReplaced() async throws {
        let fixture = try EngineFixture(seed: 62)
        try await fixture.add(0..<1)
        let provider = TokenProvider(engine: fixture.engine())
        fixture.google.answer { .grantFor($0.count == 1 ? .seconds(7200) : .seconds(600)) }
        let first = try await provider.token(of: fixture.grant(0), minimumLife: .zero)
        fixture.time.advance(by: .seconds(60))
        let second = try await provider.renewedToken(of: fixture.grant(0), insteadOf: first.accessToken)
        #expect(second.accessToken != first.accessToken)
        #expect(second.accessToken.reveal() == fixture.google.account(0).accessToken)
    }

    @Test("With any lifetimes in any order, each grant is refreshed at most twice a second")
    func anyLifetimes() async throws {
        for seed in [63, 64, 65] as [UInt64] {
            let fixture = try EngineFixture(seed: seed)
            try await fixture.add(0..<10)
            let lifetimes: [Duration] = [.seconds(1), .seconds(7), .seconds(30), .seconds(300), .seconds(3600)]
            fixture.google.answer { request in
                let draw = SeededRandom(seed: seed << 32 + UInt64(request.account << 16 + request.count)).nextBits()
                return .grantFor(lifetimes[Int(draw % UInt64(lifetimes.count))])
            }
            await fixture.run(fixture.engine(scanInterval: .seconds(2)), for: .seconds(600))
            for (number, account) in fixture.google.accounts {
                let waits = zip(account.requestTimes.dropFirst(), account.requestTimes).map { $0 - $1 }
                #expect(waits.allSatisfy { $0 >= .milliseconds(500) }, "seed \(seed), account \(number)")
            }
            #expect(try await fixture.accountsWithLostToken().isEmpty, "seed \(seed)")
        }
    }
}

import Scheduler
import Storage
import TestSupport
import Testing

@testable import Base

@Suite("Vending without the engine", .timeLimit(.minutes(10)))
struct TokenProviderTests {
    @Test("A live token is served without the engine, and not marked as fresh")
    func served() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        let provider = TokenProvider(engine: fixture.engine())
        let first = try await provider.token(of: fixture.grant(0), minimumLife: .seconds(60))
        #expect(first.isFresh)
        let second = try await provider.token(of: fixture.grant(0), minimumLife: .seconds(60))
        #expect(!second.isFresh && second.accessToken == first.accessToken)
        #expect(fixture.google.calls == 1)
    }

    @Test(
        "The requested life is limited to four fifths of the token's lifetime",
        arguments: [(719, false), (721, true)]
    )
    func cap(secondsPassed: Int, isRefreshed: Bool) async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        let provider = TokenProvider(engine: fixture.engine())
        _ = try await provider.token(of: fixture.grant(0), minimumLife: .zero)
        fixture.time.advance(by: .seconds(secondsPassed))
        let token = try await provider.token(of: fixture.grant(0), minimumLife: .seconds(3600))
        #expect(token.isFresh == isRefreshed)
    }

    @Test("A token that cannot be renewed is refused as reauth_required, since its expiry")
    func noRefreshToken() async throws {
        let fixture = try EngineFixture()
        let token = try Sample.accessToken(lifetime: .seconds(5))
        let grant = try Sample.grant(hasRefreshToken: false, accessToken: token)
        let provider = TokenProvider(engine: fixture.engine())
        fixture.time.advance(by: .seconds(5))
        let expected = VendingError.refused(
            state: .reauthRequired,
            reason: .noRefreshToken,
            since: start + .seconds(5)
        )
        await #expect(throws: expected) { try await provider.token(of: grant, minimumLife: .zero) }
    }
}

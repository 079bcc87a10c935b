import Clocks
import GoogleOAuth
import RefreshEngine
import Secrets
import Store
import Testing

@Suite("Another token for a caller whose token Google refused", .timeLimit(.minutes(10)))
struct RenewalTests {
    private func provider(_ world: World) -> TokenProvider {
        TokenProvider(store: world.store, vault: world.vault, engine: world.engine(), time: world.time)
    }

    @Test("A thousand callers at once cost one call, and late ones none")
    func singleRefresh() async throws {
        let world = try World()
        try await world.add(0..<1)
        let provider = provider(world)
        let first = try await provider.token(of: world.grant(0), minimumLife: .zero)
        world.time.advance(by: .seconds(60))
        world.google.answer { _ in .hold }
        let tokens = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<1000 {
                group.addTask {
                    try await provider.renewedToken(of: world.grant(0), insteadOf: first.accessToken).accessToken
                        .reveal()
                }
            }
            await world.google.waitUntilHolding(1)
            world.google.release()
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(tokens == [world.google.account(0).accessToken])
        #expect(tokens != [first.accessToken.reveal()])
        let late = try await provider.renewedToken(of: world.grant(0), insteadOf: first.accessToken)
        #expect(tokens == [late.accessToken.reveal()])
        #expect(late.warning == nil && !late.isFresh)
        #expect(world.google.calls == 2)
    }

    @Test("The same grant is refreshed again ten seconds later, not before")
    func pause() async throws {
        let world = try World()
        try await world.add(0..<1)
        let provider = provider(world)
        let first = try await provider.token(of: world.grant(0), minimumLife: .zero)
        world.time.advance(by: .seconds(7))
        await #expect(throws: VendingFailure.tooSoon(wait: .seconds(3))) {
            try await provider.renewedToken(of: world.grant(0), insteadOf: first.accessToken)
        }
        #expect(world.google.calls == 1)
        world.time.advance(by: .seconds(3))
        let second = try await provider.renewedToken(of: world.grant(0), insteadOf: first.accessToken)
        #expect(second.isFresh && second.accessToken != first.accessToken)
        #expect(world.google.calls == 2)
    }

    @Test("While Google cannot be reached, the rejected token is not served again")
    func unreachable() async throws {
        let world = try World()
        try await world.add(0..<1)
        let provider = provider(world)
        let first = try await provider.token(of: world.grant(0), minimumLife: .zero)
        world.time.advance(by: .seconds(60))
        world.google.answer { _ in .answer(.noAnswer(code: "timeout")) }
        await #expect(throws: VendingFailure.unavailable(reason: "timeout")) {
            try await provider.renewedToken(of: world.grant(0), insteadOf: first.accessToken)
        }
        await #expect(throws: VendingFailure.tooSoon(wait: .seconds(10))) {
            try await provider.renewedToken(of: world.grant(0), insteadOf: first.accessToken)
        }
        #expect(world.google.calls == 2)
    }

    @Test("A grant that turns out to be dead is refused with its reason")
    func dead() async throws {
        let world = try World()
        try await world.add(0..<1)
        let provider = provider(world)
        let first = try await provider.token(of: world.grant(0), minimumLife: .zero)
        world.time.advance(by: .seconds(60))
        world.google.answer { _ in .answer(.invalidGrant) }
        let expected = VendingFailure.refused(state: .disconnected, reason: .invalidGrant, since: world.time.now)
        for _ in 0..<2 {
            await #expect(throws: expected) {
                try await provider.renewedToken(of: world.grant(0), insteadOf: first.accessToken)
            }
        }
        #expect(world.google.calls == 2)
    }
}

@Suite("Vending without the engine", .timeLimit(.minutes(10)))
struct VendorTests {
    @Test("A live token is served without the engine, and not marked as fresh")
    func served() async throws {
        let world = try World()
        try await world.add(0..<1)
        let provider = TokenProvider(store: world.store, vault: world.vault, engine: world.engine(), time: world.time)
        let first = try await provider.token(of: world.grant(0), minimumLife: .seconds(60))
        #expect(first.isFresh)
        let second = try await provider.token(of: world.grant(0), minimumLife: .seconds(60))
        #expect(!second.isFresh && second.accessToken == first.accessToken)
        #expect(world.google.calls == 1)
    }

    @Test(
        "The requested life is limited to four fifths of the token's lifetime",
        arguments: [(719, false), (721, true)]
    )
    func cap(secondsPassed: Int, isRefreshed: Bool) async throws {
        let world = try World()
        try await world.add(0..<1)
        let provider = TokenProvider(store: world.store, vault: world.vault, engine: world.engine(), time: world.time)
        _ = try await provider.token(of: world.grant(0), minimumLife: .zero)
        world.time.advance(by: .seconds(secondsPassed))
        let token = try await provider.token(of: world.grant(0), minimumLife: .seconds(3600))
        #expect(token.isFresh == isRefreshed)
    }

    @Test("A token that cannot be renewed is refused as reauth_required, since its expiry")
    func noRefreshToken() async throws {
        let world = try World()
        let token = try Sample.accessToken(lifetime: .seconds(5))
        let grant = try Sample.grant(hasRefreshToken: false, accessToken: token)
        let provider = TokenProvider(store: world.store, vault: world.vault, engine: world.engine(), time: world.time)
        world.time.advance(by: .seconds(5))
        let expected = VendingFailure.refused(
            state: .reauthRequired,
            reason: .noRefreshToken,
            since: start + .seconds(5)
        )
        await #expect(throws: expected) { try await provider.token(of: grant, minimumLife: .zero) }
    }
}

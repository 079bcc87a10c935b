import Crypto
import GoogleOAuth
import Scheduler
import Storage
import TestSupport
import Testing

@testable import Base

@Suite("Another token for a caller whose token Google refused", .timeLimit(.minutes(10)))
struct RenewalTests {
    private func provider(_ fixture: EngineFixture) -> TokenProvider {
        TokenProvider(engine: fixture.engine())
    }

    @Test("A thousand callers at once cost one call, and late ones none")
    func singleRefresh() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        let provider = provider(fixture)
        let first = try await provider.token(of: fixture.grant(0), minimumLife: .zero)
        fixture.time.advance(by: .seconds(60))
        fixture.google.answer { _ in .hold }
        let tokens = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<1000 {
                group.addTask {
                    try await provider.renewedToken(of: fixture.grant(0), insteadOf: first.accessToken).accessToken
                        .reveal()
                }
            }
            await fixture.google.waitUntilHolding(1)
            fixture.google.release()
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(tokens == [fixture.google.account(0).accessToken])
        #expect(tokens != [first.accessToken.reveal()])
        let late = try await provider.renewedToken(of: fixture.grant(0), insteadOf: first.accessToken)
        #expect(tokens == [late.accessToken.reveal()])
        #expect(late.warning == nil && !late.isFresh)
        #expect(fixture.google.calls == 2)
    }

    @Test("The same grant is refreshed again ten seconds later, not before")
    func pause() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        let provider = provider(fixture)
        let first = try await provider.token(of: fixture.grant(0), minimumLife: .zero)
        fixture.time.advance(by: .seconds(7))
        await #expect(throws: VendingError.tooSoon(wait: .seconds(3))) {
            try await provider.renewedToken(of: fixture.grant(0), insteadOf: first.accessToken)
        }
        #expect(fixture.google.calls == 1)
        fixture.time.advance(by: .seconds(3))
        let second = try await provider.renewedToken(of: fixture.grant(0), insteadOf: first.accessToken)
        #expect(second.isFresh && second.accessToken != first.accessToken)
        #expect(fixture.google.calls == 2)
    }

    @Test("While Google cannot be reached, the rejected token is not served again")
    func unreachable() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        let provider = provider(fixture)
        let first = try await provider.token(of: fixture.grant(0), minimumLife: .zero)
        fixture.time.advance(by: .seconds(60))
        fixture.google.answer { _ in .answer(.noAnswer(code: "connect", outcomeUnknown: false)) }
        await #expect(throws: VendingError.unavailable(reason: "connect")) {
            try await provider.renewedToken(of: fixture.grant(0), insteadOf: first.accessToken)
        }
        await #expect(throws: VendingError.tooSoon(wait: .seconds(10))) {
            try await provider.renewedToken(of: fixture.grant(0), insteadOf: first.accessToken)
        }
        #expect(fixture.google.calls == 2)
    }

    @Test("A grant that turns out to be dead is refused with its reason")
    func dead() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        let provider = provider(fixture)
        let first = try await provider.token(of: fixture.grant(0), minimumLife: .zero)
        fixture.time.advance(by: .seconds(60))
        fixture.google.answer { _ in .answer(.invalidGrant) }
        let expected = VendingError.refused(state: .disconnected, reason: .invalidGrant, since: fixture.time.now)
        for _ in 0..<2 {
            await #expect(throws: expected) {
                try await provider.renewedToken(of: fixture.grant(0), insteadOf: first.accessToken)
            }
        }
        #expect(fixture.google.calls == 2)
    }
}

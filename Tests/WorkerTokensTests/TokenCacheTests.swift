import Foundation
import Testing

@testable import WorkerTokens

@Suite("The kept tokens")
struct TokenCacheTests {
    @Test("Their number is limited, and those that expire first go first")
    func limit() {
        var cache = TokenCache()
        let maximum = TokenCache.maximumCount
        for number in 0...maximum {
            cache.store(Self.token(deadline: Double(1000 + number)), for: Self.subject(number), at: 0)
        }
        #expect(cache.count <= maximum / 2 + 1)
        #expect(cache.token(for: Self.subject(0), minimumLife: 0, at: 0) == nil)
        #expect(cache.token(for: Self.subject(maximum), minimumLife: 0, at: 0) != nil)
    }

    @Test("Expired ones go before any that lives")
    func expired() {
        var cache = TokenCache()
        for number in 0..<TokenCache.maximumCount {
            cache.store(Self.token(deadline: number < 10 ? 100 : 2000), for: Self.subject(number), at: 0)
        }
        cache.store(Self.token(deadline: 2000), for: Self.subject(-1), at: 200)
        #expect(cache.count == TokenCache.maximumCount - 9)
    }

    @Test("A token without time left is not used, whatever the caller asks for")
    func withoutTime() {
        var cache = TokenCache()
        cache.store(Self.token(deadline: 100), for: Self.subject(1), at: 0)
        #expect(cache.token(for: Self.subject(1), minimumLife: 0, at: 99) != nil)
        #expect(cache.token(for: Self.subject(1), minimumLife: 0, at: 100) == nil)
        // The clock cannot be read.
        #expect(cache.token(for: Self.subject(1), minimumLife: 0, at: .infinity) == nil)
    }

    @Test("The token of a user is not another's whose id differs only in its bytes")
    func bytes() {
        var cache = TokenCache()
        let (first, second) = ("jos\u{e9}", "jose\u{301}")
        let subject = { (user: String) in TokenSubject(user: user, connection: nil, scopes: []) }
        #expect(first == second, "they are equal as String")
        cache.store(Self.token(deadline: 100), for: subject(first), at: 0)
        #expect(cache.token(for: subject(second), minimumLife: 0, at: 0) == nil)
        cache.remove(user: second)
        #expect(cache.token(for: subject(first), minimumLife: 0, at: 0) != nil)
    }

    private static func subject(_ number: Int) -> TokenSubject {
        TokenSubject(user: "user-\(number)", connection: nil, scopes: [])
    }

    private static func token(deadline: Double) -> WorkerTokens.Token {
        WorkerTokens.Token(
            value: "ya29",
            expiresAt: Date(timeIntervalSince1970: 0),
            grantedScopes: [],
            warning: nil,
            deadline: deadline
        )
    }
}

import AccountClient
import Foundation
import Testing

@Suite("A token store that fails", .timeLimit(.minutes(10)))
struct StoreFailureTests {
    private let store = FlawedTokenStore()

    private static func failure(_ action: AccountError.StoreAction) -> AccountError {
        .tokenStore(action, domain: "Keychain", code: -25308)
    }

    @Test(
        "A refreshed pair that could not be saved is used, reported, and saved with the next call",
        arguments: TokenKey.allCases
    )
    func unsavedRefresh(key: TokenKey) async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        let client = try backend.client(store)
        store.fail(at: [.save(key)])
        await #expect(throws: Self.failure(.save)) { try await client.forceRefresh() }
        #expect(try await client.status() == 200)
        // Its refresh token is the only one that the server accepts: it must be saved before it is spent.
        await #expect(throws: Self.failure(.save)) { try await client.forceRefresh() }
        #expect(backend.refreshes == 1)
        store.fail(at: [])
        #expect(try await client.status() == 200)
        #expect(store.tokens[.refreshToken] == "refresh-2")
        #expect(store.tokens[.accessToken]?.hasSuffix("access-2") == true)
        try await client.forceRefresh()
        #expect(backend.refreshes == 2)
    }

    @Test("A call whose refresh could not be saved still succeeds")
    func unsavedRetry() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        backend.refuseAccessToken()
        store.fail(at: [.save(.refreshToken)])
        #expect(try await backend.client(store).status() == 200)
    }

    @Test("No refresh token is spent while the store cannot be read")
    func unreadableStore() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        let client = try backend.client(store)
        #expect(try await client.isSignedIn)
        store.fail(at: [.load])
        #expect(try await client.status() == 200)
        await #expect(throws: Self.failure(.load)) { try await client.forceRefresh() }
        #expect(backend.refreshes == 0)
        store.fail(at: [])
        try await client.forceRefresh()
        #expect(backend.refreshes == 1)
    }

    @Test("A store that cannot be read at the start is read at the next call")
    func lateStore() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        store.fail(at: [.load])
        let client = try backend.client(store)
        await #expect(throws: Self.failure(.load)) { try await client.status() }
        store.fail(at: [])
        #expect(try await client.status() == 200)
    }

    @Test("A sign-in that cannot be saved fails", arguments: TokenKey.allCases)
    func unsavedSignIn(key: TokenKey) async throws {
        let backend = try Backend()
        let client = try backend.client(store)
        store.fail(at: [.save(key)])
        await #expect(throws: Self.failure(.save)) { try await client.signIn(googleAccessToken: "from-google") }
        #expect(try await !client.isSignedIn)
        #expect(store.tokens.isEmpty)
    }

    @Test(
        "A log-out whose tokens cannot be removed takes effect in this process, and notifies the server and the caller"
    )
    func unremoved() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        let client = try backend.client(store)
        store.fail(at: [.remove])
        await #expect(throws: Self.failure(.remove)) { try await client.logout() }
        #expect(backend.requests.map(\.line) == ["POST /api/auth/logout"])
        await #expect(throws: AccountError.signedOut) { try await client.status() }
        store.fail(at: [])
        try await client.logout()
        #expect(store.tokens.isEmpty)
    }

    @Test("Tokens that cannot be read are removed on logging out")
    func unreadableLogout() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        store.fail(at: [.load])
        #expect(try await !backend.client(store).logout())
        #expect(store.tokens.isEmpty)
    }

    @Test("Tokens that another process of the app refreshed are used, and not refreshed again")
    func otherProcess() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        let app = try backend.client(store)
        #expect(try await app.isSignedIn)
        try await backend.client(store).forceRefresh()
        #expect(try await app.status() == 200)
        #expect(backend.refreshes == 1)
    }

    @Test("A log-out by another process of the app is noticed at the next refresh")
    func otherProcessLogout() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        let app = try backend.client(store)
        #expect(try await app.isSignedIn)
        try await backend.client(store).logout()
        await #expect(throws: AccountError.signedOut) { try await app.status() }
        #expect(backend.refreshes == 0)
    }
}

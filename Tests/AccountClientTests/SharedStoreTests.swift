import AccountClient
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite("A token store that two processes share", .timeLimit(.minutes(1)))
struct SharedStoreTests {
    private let store = InMemoryTokenStore()

    /// Returns a backend that delays the first refresh with `refresh-1` until the gate opens, and then responds with
    /// `steps`.
    private func backend(_ gate: Gate, _ steps: [ScriptedServer.Step]?) throws -> Backend {
        let isFirst = Mutex(true)
        return try Backend { request in
            guard request.body.contains("refresh-1"), isFirst.withLock({ exchange(&$0, false) }) else { return nil }
            gate.pass()
            return steps
        }
    }

    @Test("A response that is older than the stored tokens is dropped")
    func olderResponse() async throws {
        let gate = Gate()
        let backend = try backend(gate, Backend.tokens(("late", "late")))
        try backend.signIn(into: store)
        backend.refuseAccessToken()
        let slow = try backend.client(store)
        let call = Task { try await slow.status() }
        await backend.waitForRequests(2)
        let other = try backend.client(store)
        try await other.forceRefresh()
        try await other.forceRefresh()
        gate.open()
        #expect(try await call.value == 200)
        #expect(store.load(.refreshToken) == "refresh-3")
        #expect(store.load(.accessToken)?.hasSuffix("access-3") == true)
    }

    @Test("The refusal of a token that is no longer stored does not sign the user out")
    func olderRefusal() async throws {
        let gate = Gate()
        let backend = try backend(gate, Backend.refusal)
        try backend.signIn(into: store)
        backend.refuseAccessToken()
        let slow = try backend.client(store)
        let call = Task { try await slow.status() }
        await backend.waitForRequests(2)
        try await backend.client(store).forceRefresh()
        gate.open()
        #expect(try await call.value == 200)
        #expect(store.load(.refreshToken) == "refresh-2")
    }

    @Test("A log-out by another process during a refresh is final")
    func logoutElsewhere() async throws {
        let gate = Gate()
        let backend = try backend(gate, Backend.tokens(("late", "late")))
        try backend.signIn(into: store)
        let slow = try backend.client(store)
        let refreshing = Task { try await slow.forceRefresh() }
        await backend.waitForRequests(1)
        try await backend.client(store).logout()
        gate.open()
        await #expect(throws: AccountError.signedOut) { try await refreshing.value }
        #expect(store.load(.refreshToken) == nil)
        #expect(try await !slow.isSignedIn)
    }

    @Test("A user whom another process signed in is not taken for the former one", arguments: [true, false])
    func otherUser(storesAccessToken: Bool) async throws {
        let other = Backend.token("b", user: "bob", expiresIn: 1800)
        let backend = try Backend { request in
            switch (request.line, request.bearer) {
            case ("POST /api/auth/refresh", _): Backend.tokens((other, "refresh-b"))
            case ("DELETE /v1/user/me", other): answer(#"{"data":{}}"#)
            default: nil
            }
        }
        try backend.signIn(into: store)
        let client = try backend.client(store)
        #expect(try await client.isSignedIn)
        store.save("refresh-b", for: .refreshToken)
        if storesAccessToken { store.save(other, for: .accessToken) } else { store.remove(.accessToken) }
        backend.refuseAccessToken()
        await #expect(throws: AccountError.sessionReplaced) { try await client.deleteAccount() }
        #expect(!backend.requests.contains { $0.line == "DELETE /v1/user/me" && $0.bearer == other })
        // The next deletion is that of the user who is signed in now.
        try await client.deleteAccount()
        #expect(store.load(.refreshToken) == nil)
    }

    @Test("A session whose user the server has joined with another one goes on")
    func joinedUsers() async throws {
        let backend = try Backend { request in
            guard request.line == "POST /api/auth/refresh" else { return nil }
            return Backend.tokens((Backend.token("b", user: "joined", expiresIn: 1800), "refresh-b"))
        }
        try backend.signIn(into: store)
        let client = try backend.client(store)
        try await client.forceRefresh()
        #expect(store.load(.refreshToken) == "refresh-b")
        #expect(try await client.isSignedIn)
    }

    @Test(
        "Another process's tokens with another user are this session's only if they name it",
        arguments: ["ada's", "bob's", nil] as [String?],
        [true, false]
    )
    func joinedUsersElsewhere(session: String?, storesAccessToken: Bool) async throws {
        let other = Backend.token("b", user: "joined", session: session, expiresIn: 1800)
        let backend = try Backend { request in
            switch request.line {
            case "POST /api/auth/refresh": Backend.tokens((other, "refresh-c"))
            case "GET /things" where request.bearer == other: answer("{}")
            default: nil
            }
        }
        store.save(Backend.token("a", user: "ada", session: "ada's", expiresIn: 1800), for: .accessToken)
        store.save("refresh-a", for: .refreshToken)
        let client = try backend.client(store)
        #expect(try await client.isSignedIn)
        store.save("refresh-b", for: .refreshToken)
        if storesAccessToken { store.save(other, for: .accessToken) } else { store.remove(.accessToken) }
        if session == "ada's" {
            #expect(try await client.status() == 200)
        } else {
            await #expect(throws: AccountError.sessionReplaced) { try await client.status() }
        }
    }

    @Test("Tokens are compared and written without another process in between")
    func exclusiveWrites() async throws {
        let backend = try Backend()
        let counting = CountingTokenStore()
        let client = try backend.client(counting)
        try await client.signIn(googleAccessToken: "from-google")
        try await client.forceRefresh()
        try await client.logout()
        // Two writes of the refresh, three of the sign-in, two of the log-out.
        #expect(counting.writes == 7)
        #expect(counting.writesOutside == 0)
    }
}

/// Sets a value and returns the former one.
private func exchange(_ value: inout Bool, _ new: Bool) -> Bool {
    defer { value = new }
    return value
}

/// A token store that counts the writes that are made outside of `exclusively`.
private final class CountingTokenStore: TokenStore {
    private struct State {
        var depth = 0
        var writes = 0
        var writesOutside = 0
    }

    private let wrapped = InMemoryTokenStore()
    private let state = Mutex(State())

    var writes: Int { state.withLock { $0.writes } }
    var writesOutside: Int { state.withLock { $0.writesOutside } }

    func load(_ key: TokenKey) -> String? { wrapped.load(key) }

    func save(_ token: String, for key: TokenKey) {
        recordWrite()
        wrapped.save(token, for: key)
    }

    func remove(_ key: TokenKey) {
        recordWrite()
        wrapped.remove(key)
    }

    func exclusively<Value>(_ body: () throws -> Value) throws -> Value {
        state.withLock { $0.depth += 1 }
        defer { state.withLock { $0.depth -= 1 } }
        return try body()
    }

    private func recordWrite() {
        state.withLock { state in
            state.writes += 1
            if state.depth == 0 { state.writesOutside += 1 }
        }
    }
}

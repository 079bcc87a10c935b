import AccountClient
import Foundation
import TestSupport
import Testing

@Suite("Signing in and out", .timeLimit(.minutes(10)))
struct SessionTests {
    private let store = InMemoryTokenStore()

    @Test("Signing in exchanges Google's token for the app's, and stores both")
    func signIn() async throws {
        let backend = try Backend()
        let client = try backend.client(store)
        #expect(try await !client.isSignedIn)
        try await client.signIn(googleAccessToken: "from-google")
        #expect(backend.requests.map(\.line) == ["POST /api/auth/mobile/google"])
        #expect(backend.requests.map(\.body) == [#"{"access_token":"from-google"}"#])
        #expect(backend.requests.map(\.bearer) == [nil])
        #expect(store.load(.accessToken)?.hasSuffix("access-1") == true)
        #expect(store.load(.refreshToken) == "refresh-1")
        #expect(try await client.status() == 200)
    }

    @Test("After a refused sign-in the former user stays signed in")
    func refusedSignIn() async throws {
        let backend = try Backend { request in
            request.line.hasSuffix("google")
                ? answer(#"{"detail":"Invalid Google access token"}"#, status: "400 Bad Request") : nil
        }
        try backend.signIn(into: store)
        let client = try backend.client(store)
        let refusal = AccountError.refused(status: 400, code: nil, message: "Invalid Google access token")
        await #expect(throws: refusal) { try await client.signIn(googleAccessToken: "forged") }
        #expect(store.load(.refreshToken) == "refresh-1")
    }

    @Test("The tokens of a user who signed in earlier are found again")
    func laterStart() async throws {
        let backend = try Backend()
        try await backend.client(store).signIn(googleAccessToken: "from-google")
        #expect(try await backend.client(store).status() == 200)
    }

    @Test("A process that ended between storing the two tokens continues with the refresh token")
    func halfStored() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        store.remove(.accessToken)
        #expect(try await backend.client(store).status() == 200)
        #expect(backend.requests.map(\.line) == ["POST /api/auth/refresh", "GET /things"])
    }

    @Test("Logging out notifies the server and removes both tokens")
    func logout() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        let access = store.load(.accessToken)
        let client = try backend.client(store)
        #expect(try await client.logout())
        #expect(backend.requests.map(\.line) == ["POST /api/auth/logout"])
        #expect(backend.requests.map(\.bearer) == [access])
        #expect(backend.requests.map(\.body) == [#"{"refresh_token":"refresh-1"}"#])
        #expect(store.load(.accessToken) == nil)
        #expect(store.load(.refreshToken) == nil)
        await #expect(throws: AccountError.signedOut) { try await client.status() }
        #expect(try await !client.logout())
        #expect(backend.requests.count == 1)
    }

    @Test("An expired access token is not sent to log out; the refresh token is")
    func expiredLogout() async throws {
        let backend = try Backend()
        try backend.signIn(into: store, secondsLeft: -1)
        #expect(try await backend.client(store).logout())
        #expect(backend.requests.map(\.bearer) == [nil])
    }

    @Test(
        "Logging out removes the tokens if the server refuses or does not respond",
        arguments: ["401 Unauthorized", "500 Down", nil]
    )
    func refusedLogout(status: String?) async throws {
        let backend = try Backend { _ in status.map { answer("{}", status: $0) } ?? [.close] }
        try backend.signIn(into: store)
        #expect(try await !backend.client(store).logout())
        #expect(store.load(.accessToken) == nil)
        #expect(store.load(.refreshToken) == nil)
    }

    @Test("The server is notified of a log-out whose caller was cancelled")
    func cancelledLogout() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        let client = try backend.client(store)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await client.logout()
        }
        #expect(try await task.value)
    }

    @Test("A log-out during a refresh is final: the response does not restore tokens", arguments: [true, false])
    func logoutDuringRefresh(isSignedInAgain: Bool) async throws {
        let gate = Gate()
        let backend = try Backend { request in
            guard request.line == "POST /api/auth/refresh" else { return nil }
            gate.pass()
            return Backend.tokens(("late", "late"))
        }
        try backend.signIn(into: store)
        try await backend.withClient(store) { client in
            let refreshing = Task { try await client.forceRefresh() }
            await backend.waitForRequests(1)
            try await client.logout()
            await #expect(throws: AccountError.signedOut) { try await refreshing.value }
            if isSignedInAgain { try await client.signIn(googleAccessToken: "again") }
            gate.open()
        }
        #expect(store.load(.refreshToken) == (isSignedInAgain ? "refresh-2" : nil))
        #expect(store.load(.accessToken)?.hasSuffix("access-2") == (isSignedInAgain ? true : nil))
    }

    @Test(
        "Another user's sign-in during a refresh wins, whatever the response to the refresh",
        arguments: [true, false]
    )
    func signInDuringRefresh(isRefreshRefused: Bool) async throws {
        let gate = Gate()
        let backend = try Backend { request in
            guard request.line == "POST /api/auth/refresh" else { return nil }
            gate.pass()
            return isRefreshRefused ? answer("{}", status: "401 Unauthorized") : Backend.tokens(("late", "late"))
        }
        try backend.signIn(into: store)
        backend.refuseAccessToken()
        try await backend.withClient(store) { client in
            let call = Task { try await client.status(of: "of-the-first") }
            await backend.waitForRequests(2)
            try await client.signIn(googleAccessToken: "second")
            await #expect(throws: AccountError.sessionReplaced) { try await call.value }
            gate.open()
        }
        #expect(store.load(.refreshToken) == "refresh-2")
        #expect(backend.requests.count { $0.line == "GET /of-the-first" } == 1)
    }

    @Test("A call that is refused after another user signed in is not sent as that user")
    func signInDuringCall() async throws {
        let gate = Gate()
        let backend = try Backend { request in
            if request.line == "GET /slow" { gate.pass() }
            return nil
        }
        try backend.signIn(into: store)
        let client = try backend.client(store)
        let call = Task { try await client.status(of: "slow") }
        await backend.waitForRequests(1)
        try await client.signIn(googleAccessToken: "second")
        gate.open()
        await #expect(throws: AccountError.sessionReplaced) { try await call.value }
        #expect(backend.requests.count { $0.line == "GET /slow" } == 1)
    }

    @Test("Of two sign-ins the last one requested wins, and the late response is dropped")
    func lastSignIn() async throws {
        let gate = Gate()
        let backend = try Backend { request in
            if request.body.contains("first") { gate.pass() }
            return nil
        }
        let client = try backend.client(store)
        let first = Task { try await client.signIn(googleAccessToken: "first") }
        await backend.waitForRequests(1)
        try await client.signIn(googleAccessToken: "second")
        let signedIn = store.load(.refreshToken)
        gate.open()
        await #expect(throws: AccountError.sessionReplaced) { try await first.value }
        #expect(store.load(.refreshToken) == signedIn)
    }

    @Test("A sign-in whose response comes after a log-out has no effect")
    func logoutDuringSignIn() async throws {
        let gate = Gate()
        let backend = try Backend { _ in
            gate.pass()
            return nil
        }
        let client = try backend.client(store)
        let signingIn = Task { try await client.signIn(googleAccessToken: "from-google") }
        await backend.waitForRequests(1)
        try await client.logout()
        gate.open()
        await #expect(throws: AccountError.sessionReplaced) { try await signingIn.value }
        #expect(store.load(.refreshToken) == nil)
    }
}

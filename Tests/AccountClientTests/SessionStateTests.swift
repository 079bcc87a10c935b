import AccountClient
import Foundation
import FoundationNetworking
import Synchronization
import TestSupport
import Testing

@Suite("The state of the session", .timeLimit(.minutes(10)))
struct SessionStateTests {
    private let store = InMemoryTokenStore()

    @Test("A reader gets the present state and each change, and the end of the client")
    func changes() async throws {
        let backend = try Backend()
        var client: AccountClient? = try backend.client(store)
        var states = try #require(client).sessionStates.makeAsyncIterator()
        #expect(await states.next() == .signedOut)
        try await client?.signIn(googleAccessToken: "token")
        #expect(await states.next() == .signedIn)
        // A refresh changes nothing.
        try await client?.forceRefresh()
        try await client?.logout()
        #expect(await states.next() == .signedOut)
        client = nil
        #expect(await states.next() == nil)
    }

    @Test("The end of the session by the server is a change")
    func endedSession() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        let client = try backend.client(store)
        var states = client.sessionStates.makeAsyncIterator()
        var others = client.sessionStates.makeAsyncIterator()
        #expect(await states.next() == .signedIn)
        #expect(await others.next() == .signedIn)
        backend.endSession()
        await #expect(throws: AccountError.signedOut) { try await client.status() }
        #expect(await states.next() == .signedOut)
        #expect(await others.next() == .signedOut)
    }

    @Test("A timeout, a lost response and a proxy's 401 leave the user signed in")
    func lostResponse() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        let client = try backend.client(store)
        var states = client.sessionStates.makeAsyncIterator()
        #expect(await states.next() == .signedIn)
        backend.loseResponses(true)
        await #expect(throws: AccountError.self) { try await client.forceRefresh() }
        backend.loseResponses(false)
        try await client.logout()
        // Nothing was between the two.
        #expect(await states.next() == .signedOut)
    }

    @Test("A store that cannot be read yet has no state")
    func unreadableStore() async throws {
        let backend = try Backend()
        let store = FlawedTokenStore()
        try backend.signIn(into: store)
        store.fail(at: [.load])
        let client = try backend.client(store)
        var states = client.sessionStates.makeAsyncIterator()
        await #expect(throws: AccountError.self) { try await client.status() }
        store.fail(at: [])
        #expect(try await client.status() == 200)
        #expect(await states.next() == .signedIn)
    }

    @Test("A deleted account is signed out", arguments: [true, false])
    func deletedAccount(isLost: Bool) async throws {
        let lost = Mutex(isLost)
        let backend = try Backend { request in
            guard request.line == "DELETE /v1/user/me" else { return nil }
            let isLost = lost.withLock { lost in
                defer { lost = false }
                return lost
            }
            return isLost ? [.close] : answer(#"{"message":"User deleted successfully","code":200,"data":{}}"#)
        }
        try backend.signIn(into: store)
        let client = try backend.client(store)
        if isLost {
            await #expect(throws: AccountError.self) { try await client.deleteAccount() }
            #expect(store.load(.refreshToken) == "refresh-1")
        }
        try await client.deleteAccount()
        #expect(store.load(.refreshToken) == nil && store.load(.accessToken) == nil)
        var states = client.sessionStates.makeAsyncIterator()
        #expect(await states.next() == .signedOut)
        await #expect(throws: AccountError.signedOut) { try await client.deleteAccount() }
    }

    @Test("A deletion that fails does not end a sign-in")
    func failedDeletionDuringSignIn() async throws {
        let gate = Gate()
        let backend = try Backend { request in
            if request.line == "POST /api/auth/mobile/google" { gate.pass() }
            return nil
        }
        let client = try backend.client(store)
        let signingIn = Task { try await client.signIn(googleAccessToken: "from-google") }
        await backend.waitForRequests(1)
        await #expect(throws: AccountError.signedOut) { try await client.deleteAccount() }
        gate.open()
        try await signingIn.value
        #expect(try await client.isSignedIn)
    }

    @Test("A user who signs in during the deletion of another account stays signed in")
    func signInDuringDeletion() async throws {
        let gate = Gate()
        let backend = try Backend { request in
            guard request.line == "DELETE /v1/user/me" else { return nil }
            gate.pass()
            return answer(#"{"data":{}}"#)
        }
        try backend.signIn(into: store)
        let client = try backend.client(store)
        let deleting = Task { try await client.deleteAccount() }
        await backend.waitForRequests(1)
        try await client.signIn(googleAccessToken: "second")
        gate.open()
        try await deleting.value
        #expect(store.load(.refreshToken) == "refresh-2")
    }

    @Test("Calls wait for a network, and requests with a refresh token do not")
    func waiting() async throws {
        let waits = Mutex<[String: Bool]>([:])
        let url = try #require(URL(string: "https://api.example.com"))
        let client = try AccountClient(
            baseURL: url,
            tokens: store,
            transport: { request, canWait throws(AccountError) in
                waits.withLock { $0[request.url?.path ?? ""] = canWait }
                let isRefresh = request.url?.path == "/api/auth/refresh"
                guard let http = HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: nil) else {
                    throw .unreachable(.badURL)
                }
                return (Data((isRefresh ? #"{"access_token":"a","refresh_token":"s"}"# : "{}").utf8), http)
            },
            now: { Backend.now }
        )
        store.save("r", for: .refreshToken)
        #expect(try await client.status() == 200)
        try await client.logout()
        #expect(
            waits.withLock(\.self) == ["/api/auth/refresh": false, "/things": true, "/api/auth/logout": false]
        )
    }
}

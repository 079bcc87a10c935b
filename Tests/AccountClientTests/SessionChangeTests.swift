import AccountClient
import Foundation
import TestSupport
import Testing

@Suite("The changes of the session", .timeLimit(.minutes(10)))
struct SessionChangeTests {
    private let store = InMemoryTokenStore()

    @Test("Each has the user and the cause: start, sign-in, log-out")
    func causes() async throws {
        let backend = try Backend()
        let client = try backend.client(store)
        var changes = client.sessionChanges.makeAsyncIterator()
        let start = try #require(await changes.next())
        #expect(start.state == .signedOut && start.user == nil && start.cause == .start)
        try await client.signIn(googleAccessToken: "token")
        let signIn = try #require(await changes.next())
        #expect(signIn.state == .signedIn && signIn.cause == .signIn)
        #expect(signIn.user?.id == "ada??>>")
        // A refresh changes nothing.
        try await client.forceRefresh()
        try await client.logout()
        let logout = try #require(await changes.next())
        #expect(logout.state == .signedOut && logout.user == nil && logout.cause == .logout)
    }

    @Test("The end of the session by the server is not a log-out by the user")
    func endedSession() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        let client = try backend.client(store)
        var changes = client.sessionChanges.makeAsyncIterator()
        #expect(await changes.next()?.cause == .start)
        backend.endSession()
        await #expect(throws: AccountError.signedOut) { try await client.status() }
        let end = try #require(await changes.next())
        #expect(end.state == .signedOut && end.cause == .sessionEnded)
    }

    @Test("A log-out by another process of the app is told apart")
    func otherProcess() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        let client = try backend.client(store)
        var changes = client.sessionChanges.makeAsyncIterator()
        #expect(await changes.next()?.cause == .start)
        try await backend.client(store).logout()
        await #expect(throws: AccountError.signedOut) { try await client.forceRefresh() }
        let end = try #require(await changes.next())
        #expect(end.state == .signedOut && end.cause == .otherProcess)
    }

    @Test("The deletion of the account is a cause of its own")
    func deletion() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        let client = try backend.client(store)
        var changes = client.sessionChanges.makeAsyncIterator()
        #expect(await changes.next()?.user?.id == "ada??>>")
        try await client.deleteAccount()
        #expect(await changes.next()?.cause == .accountDeletion)
    }

    @Test("A sign-in that cannot be saved says so")
    func unsavedSignIn() async throws {
        let backend = try Backend()
        let store = FlawedTokenStore()
        try backend.signIn(into: store)
        let client = try backend.client(store)
        var changes = client.sessionChanges.makeAsyncIterator()
        #expect(await changes.next()?.cause == .start)
        store.fail(at: [.save(.refreshToken)])
        await #expect(throws: AccountError.self) { try await client.signIn(googleAccessToken: "token") }
        let end = try #require(await changes.next())
        #expect(end.state == .signedOut && end.cause == .unsavedSignIn)
    }

    @Test("Another user is a change of the user, and none of the state")
    func otherUser() async throws {
        let backend = try Backend { request in
            guard request.body.contains("for-bob") else { return nil }
            return Backend.tokens((Backend.token("b", user: "bob", expiresIn: 1800), "refresh-b"))
        }
        try backend.signIn(into: store)
        let client = try backend.client(store)
        var changes = client.sessionChanges.makeAsyncIterator()
        var states = client.sessionStates.makeAsyncIterator()
        #expect(await changes.next()?.user?.id == "ada??>>")
        #expect(await states.next() == .signedIn)
        try await client.signIn(googleAccessToken: "for-bob")
        let signIn = try #require(await changes.next())
        #expect(signIn.user?.id == "bob??>>" && signIn.cause == .signIn)
        try await client.logout()
        // Nothing was between the two.
        #expect(await states.next() == .signedOut)
    }

    @Test("The app's own session names its users")
    func ownSession() async throws {
        let backend = try Backend()
        let client = try backend.client { _ in Backend.token("access", user: "eve", expiresIn: 1800) }
        var changes = client.sessionChanges.makeAsyncIterator()
        let start = try #require(await changes.next())
        #expect(start.user?.id == "eve??>>" && start.cause == .ownSession)
        #expect(try await client.currentUser?.id == "eve??>>")
    }
}

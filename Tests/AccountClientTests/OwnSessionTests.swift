import AccountClient
import Foundation
import FoundationNetworking
import Synchronization
import TestSupport
import Testing

@Suite("An app that signs its users in elsewhere", .timeLimit(.minutes(10)))
struct OwnSessionTests {
    private static let read = ConnectionResponses.read

    /// The app's own session: its current token, and the requests for one.
    private final class Login: Sendable {
        private struct State {
            var token: String?
            var renewed: String?
            var calls: [Bool] = []
        }

        private let state = Mutex(State())

        /// `true` for each request that forced a renewal.
        var calls: [Bool] { state.withLock { $0.calls } }

        func set(_ token: String?, renewed: String? = nil) {
            state.withLock { ($0.token, $0.renewed) = (token, renewed) }
        }

        func token(isRenewed: Bool) -> String? {
            state.withLock { state in
                state.calls.append(isRenewed)
                if isRenewed { state.token = state.renewed }
                return state.token
            }
        }
    }

    private let login = Login()

    private static func token(_ user: String, _ number: Int = 1) -> String {
        Backend.token(user, expiresIn: 1800 + number)
    }

    /// Returns a backend that accepts the given tokens, and a client with the app's session.
    private func client(
        accepting tokens: [String],
        profile: String = ConnectionResponses.profile(isConnected: true, scopes: ["openid"])
    ) throws -> (AccountClient, Backend) {
        let connected = ConnectionResponses.connected(ConnectionResponses.connection("default", scopes: [Self.read]))
        let backend = try Backend { request in
            guard let bearer = request.bearer, tokens.contains(bearer) else {
                return answer(#"{"error":{"code":"TOKEN_EXPIRED"}}"#, status: "401 Unauthorized")
            }
            return switch request.line {
            case "GET /v1/user/me": answer(profile)
            case "POST /v1/connections/google": answer(connected, status: "201 Created")
            case "POST /v1/auth/gmail-tokens":
                answer(ConnectionResponses.stored(scope: Self.read), status: "201 Created")
            default: answer(#"{"data":{}}"#)
            }
        }
        let login = login
        return (try backend.client { login.token(isRenewed: $0) }, backend)
    }

    @Test("Calls carry the app's own token")
    func calls() async throws {
        let token = Self.token("ada")
        let (client, backend) = try client(accepting: [token])
        login.set(token)
        #expect(try await client.profile().email == "a@example.com")
        try await client.connectGoogle(GoogleTokens(accessToken: "a"))
        try await client.disconnectGoogle()
        try await client.deleteAccount()
        #expect(
            backend.requests.map(\.line) == [
                "GET /v1/user/me", "POST /v1/connections/google", "DELETE /v1/connections/default",
                "DELETE /v1/user/me",
            ]
        )
        #expect(backend.requests.allSatisfy { $0.bearer == token })
        #expect(!login.calls.contains(true))
    }

    @Test("A late token of the former user changes nothing")
    func lateToken() async throws {
        let (ada, bob) = (Self.token("ada"), Self.token("bob"))
        let isFirst = Mutex(true)
        let (begun, beginning) = AsyncStream<Void>.makeStream()
        let (ended, ending) = AsyncStream<Void>.makeStream()
        let backend = try Backend { request in
            request.bearer == bob ? answer(#"{"data":{}}"#) : answer("{}", status: "401 Unauthorized")
        }
        let client = try backend.client { _ in
            let waits = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            guard waits else { return bob }
            beginning.finish()
            for await _ in ended {}
            return ada
        }
        let late = Task { try await client.status() }
        for await _ in begun {}
        #expect(try await client.status() == 200)
        ending.finish()
        await #expect(throws: AccountError.sessionReplaced) { try await late.value }
        #expect(backend.requests.allSatisfy { $0.bearer == bob })
        #expect(try await client.status() == 200)
    }

    @Test("Twenty refused calls share one forced renewal")
    func renewal() async throws {
        let (old, new) = (Self.token("ada"), Self.token("ada", 2))
        let (client, backend) = try client(accepting: [new])
        login.set(old, renewed: new)
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 1...20 { group.addTask { try await client.status() } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses == Array(repeating: 200, count: 20))
        #expect(login.calls.count { $0 } == 1)
        #expect(backend.requests.allSatisfy { $0.bearer == old || $0.bearer == new })
    }

    @Test("A call that is refused twice returns the second response")
    func refusedTwice() async throws {
        let (client, backend) = try client(accepting: [])
        login.set(Self.token("ada"), renewed: Self.token("ada", 2))
        #expect(try await client.status() == 401)
        #expect(backend.requests.count == 2)
        #expect(login.calls.count { $0 } == 1)
    }

    @Test("Without a user no call is sent")
    func signedOut() async throws {
        let (client, backend) = try client(accepting: [])
        await #expect(throws: AccountError.signedOut) { try await client.profile() }
        #expect(try await !client.isSignedIn)
        login.set(Self.token("ada"))
        #expect(try await client.isSignedIn)
        #expect(backend.requests.isEmpty)
        // The renewal finds that the login's session has ended.
        await #expect(throws: AccountError.signedOut) { try await client.profile() }
    }

    @Test("A refused call is not sent again as another user")
    func otherUser() async throws {
        let (old, new) = (Self.token("ada"), Self.token("bob"))
        let (client, backend) = try client(accepting: [new])
        login.set(old, renewed: new)
        await #expect(throws: AccountError.sessionReplaced) { try await client.status() }
        #expect(!backend.requests.contains { $0.bearer == new })
        #expect(try await client.status() == 200)
    }

    @Test("Scopes go only to the user who granted them", arguments: [true, false])
    func scopes(isReplaced: Bool) async throws {
        let (ada, bob) = (Self.token("ada"), Self.token("bob"))
        let (client, backend) = try client(accepting: [ada, bob])
        login.set(ada)
        let login = login
        let granting = Task {
            try await client.addScopes([Self.read]) { _ in
                if isReplaced { login.set(bob) }
                return GoogleTokens(accessToken: "of-ada")
            }
        }
        if isReplaced {
            await #expect(throws: AccountError.sessionReplaced) { try await granting.value }
        } else {
            #expect(try await granting.value.isEmpty)
        }
        #expect(backend.requests.contains { $0.line == "POST /v1/auth/gmail-tokens" } == !isReplaced)
    }

    @Test("The error of the app's session is reported without its text")
    func failure() async throws {
        struct Failure: Error, CustomStringConvertible {
            let description = "a token"
        }
        let backend = try Backend()
        let errors: [(any Error, AccountError)] = [
            (CancellationError(), .cancelled), (URLError(.timedOut), .unreachable(.timedOut)),
            (NSError(domain: "Login", code: 7), .accessToken(domain: "Login", code: 7)),
        ]
        for (thrown, expected) in errors {
            let client = try backend.client { _ in throw thrown }
            await #expect(throws: expected) { try await client.profile() }
        }
        let client = try backend.client { _ in throw Failure() }
        do {
            _ = try await client.profile()
            Issue.record("the call succeeded")
        } catch {
            #expect(!"\(error)\(error.localizedDescription)".contains("a token"))
        }
    }

    @Test("Signing in and out stays with the app")
    func signIn() async throws {
        let (client, backend) = try client(accepting: [])
        await #expect(throws: AccountError.ownSession) { try await client.signIn(googleAccessToken: "a") }
        await #expect(throws: AccountError.ownSession) { try await client.logout() }
        #expect(backend.requests.isEmpty && login.calls.isEmpty)
    }

    @Test("A token with too little time left is renewed before it is used")
    func expiring() async throws {
        let (client, _) = try client(accepting: [])
        login.set(Backend.token("ada", expiresIn: 59), renewed: Self.token("ada"))
        try await client.refreshTokensIfNeeded()
        try await client.refreshTokensIfNeeded()
        #expect(login.calls == [false, true, false])
    }
}

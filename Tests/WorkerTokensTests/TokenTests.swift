import Foundation
import Testing
import WorkerTokens

@Suite("Tokens for a service", .timeLimit(.minutes(10)))
struct TokenTests {
    private let worker = FakeWorker()

    @Test("The first call asks the worker, and later ones use the token while it has a minute left")
    func cached() async throws {
        let tokens = try worker.client()
        async let first = tokens.token(for: "alice")
        await worker.answer(1, FakeWorker.token("ya29.first", expiresIn: 3599, warning: "http_503"))
        let token = try await first
        #expect(token.value == "ya29.first")
        #expect(token.grantedScopes == ["openid"])
        #expect(token.warning == "http_503")
        #expect(token.expiresAt.timeIntervalSince1970 == 1_795_251_600)

        worker.advance(bySeconds: 3539)
        #expect(try await tokens.token(for: "alice").value == "ya29.first")
        #expect(worker.requests.count == 1)

        worker.advance(bySeconds: 1)
        async let second = tokens.token(for: "alice")
        await worker.answer(2, FakeWorker.token("ya29.second"))
        #expect(try await second.value == "ya29.second")
    }

    @Test("The time of the request counts against the token's life")
    func slowResponse() async throws {
        let tokens = try worker.client()
        async let first = tokens.token(for: "alice")
        await worker.waitForRequests(1)
        worker.advance(bySeconds: 20)
        await worker.answer(1, FakeWorker.token("ya29.first", expiresIn: 100))
        _ = try await first
        worker.advance(bySeconds: 21)
        async let second = tokens.token(for: "alice")
        await worker.answer(2, FakeWorker.token("ya29.second"))
        #expect(try await second.value == "ya29.second")
    }

    @Test("A caller that needs more time than the token has left gets another one")
    func longerLife() async throws {
        let tokens = try worker.client()
        async let first = tokens.token(for: "alice")
        await worker.answer(1, FakeWorker.token("ya29.first", expiresIn: 600))
        _ = try await first
        async let second = tokens.token(for: "alice", minimumLife: 900)
        await worker.answer(2, FakeWorker.token("ya29.second"))
        #expect(try await second.value == "ya29.second")
        #expect(worker.requests[1].target.hasSuffix("?min_ttl=900"))
    }

    @Test("Callers at one time share a request, unless one needs a longer life")
    func sharedRequest() async throws {
        let tokens = try worker.client()
        async let calls = withThrowingTaskGroup(of: String.self) { group in
            for _ in 1...20 { group.addTask { try await tokens.token(for: "alice").value } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        await waitForWaitingCalls(20, of: tokens)
        async let long = tokens.token(for: "alice", minimumLife: 900)
        await worker.waitForRequests(2)
        await worker.answer(1, FakeWorker.token("ya29.first"))
        #expect(try await calls == ["ya29.first"])
        await worker.answer(2, FakeWorker.token("ya29.second"))
        #expect(try await long.value == "ya29.second")
        #expect(worker.requests.count == 2)
    }

    @Test("Users, connections and scopes have tokens of their own")
    func subjects() async throws {
        let tokens = try worker.client()
        async let alice = tokens.token(for: "alice")
        await worker.answer(1, FakeWorker.token("ya29.alice"))
        _ = try await alice
        async let work = tokens.token(for: "alice", connection: "work")
        await worker.answer(2, FakeWorker.token("ya29.work"))
        _ = try await work
        async let scoped = tokens.token(for: "alice", scopes: ["openid", "email", "openid"])
        await worker.answer(3, FakeWorker.token("ya29.scoped"))
        _ = try await scoped
        #expect(try await tokens.token(for: "alice", connection: "default").value == "ya29.alice")
        #expect(try await tokens.token(for: "alice", scopes: ["email", "openid"]).value == "ya29.scoped")
        #expect(
            worker.requests.map(\.target) == [
                "/v1/grants/alice/token?min_ttl=60",
                "/v1/grants/alice/token?connection=work&min_ttl=60",
                "/v1/grants/alice/token?scope=email&scope=openid&min_ttl=60",
            ]
        )
    }

    @Test("A token that Google refused is replaced once for all callers, also under other scopes")
    func refusedToken() async throws {
        let tokens = try worker.client()
        async let first = tokens.token(for: "alice")
        await worker.answer(1, FakeWorker.token("ya29.first"))
        let refused = try await first
        async let scoped = tokens.token(for: "alice", scopes: ["openid"])
        await worker.answer(2, FakeWorker.token("ya29.first"))
        _ = try await scoped

        async let one = tokens.token(for: "alice", replacing: refused)
        async let other = tokens.token(for: "alice", replacing: refused)
        await waitForWaitingCalls(2, of: tokens)
        await worker.answer(3, FakeWorker.token("ya29.second"))
        #expect(try await one.value == "ya29.second")
        #expect(try await other.value == "ya29.second")
        #expect(worker.requests[2].method == "POST")
        #expect(worker.requests[2].target == "/v1/grants/alice/token/refresh")
        #expect(worker.requests[2].body == Array(#"{"access_token":"ya29.first"}"#.utf8))

        // A caller that was slow to get its 401 gets the new token without a request.
        #expect(try await tokens.token(for: "alice", replacing: refused).value == "ya29.second")
        #expect(worker.requests.count == 3)
        async let again = tokens.token(for: "alice", scopes: ["openid"])
        await worker.answer(4, FakeWorker.token("ya29.second"))
        #expect(try await again.value == "ya29.second")
    }

    @Test("A refused token does not come back from a request that was on its way")
    func refusedDuringRequest() async throws {
        let tokens = try worker.client()
        async let first = tokens.token(for: "alice")
        await worker.answer(1, FakeWorker.token("ya29.first"))
        let refused = try await first
        async let long = tokens.token(for: "alice", minimumLife: 3600)
        await worker.waitForRequests(2)
        async let newer = tokens.token(for: "alice", replacing: refused)
        await worker.answer(3, FakeWorker.token("ya29.second"))
        #expect(try await newer.value == "ya29.second")
        await worker.answer(2, FakeWorker.token("ya29.first"))
        #expect(try await long.value == "ya29.first")
        #expect(try await tokens.token(for: "alice").value == "ya29.second")
    }

    @Test("A call that Google refuses is made once more, with another token")
    func repeatedCall() async throws {
        let tokens = try worker.client()
        async let result = tokens.withToken(for: "alice") { token in
            if token.value == "ya29.first" { throw RefusedTokenError() }
            return token.value
        }
        await worker.answer(1, FakeWorker.token("ya29.first"))
        await worker.answer(2, FakeWorker.token("ya29.second"))
        #expect(try await result == "ya29.second")

        let hopeless = Task { try await tokens.withToken(for: "alice") { _ in throw RefusedTokenError() } }
        await worker.answer(3, FakeWorker.token("ya29.third"))
        await #expect(throws: RefusedTokenError()) { try await hopeless.value }
    }

    @Test("A forgotten user's tokens are dropped, with those that are on their way")
    func forgottenUser() async throws {
        let tokens = try worker.client()
        async let first = tokens.token(for: "alice")
        await worker.waitForRequests(1)
        await tokens.forget(user: "alice")
        await worker.answer(1, FakeWorker.token("ya29.first"))
        #expect(try await first.value == "ya29.first")
        async let second = tokens.token(for: "alice")
        await worker.answer(2, FakeWorker.token("ya29.second"))
        _ = try await second
        await tokens.forget(user: "alice")
        let third = Task { try await tokens.token(for: "alice") }
        await worker.answer(
            3,
            FakeWorker.response(409, #"{"error":"disconnected","message":"","reason":"user_request"}"#)
        )
        await #expect(throws: TokenError.signInAgain(reason: "user_request")) { try await third.value }
    }

    @Test("A cancelled caller returns at once, and the request goes on for the others")
    func cancelledCaller() async throws {
        let tokens = try worker.client()
        let cancelled = Task { try await tokens.token(for: "alice") }
        async let patient = tokens.token(for: "alice")
        await waitForWaitingCalls(2, of: tokens)
        cancelled.cancel()
        await #expect(throws: TokenError.cancelled) { try await cancelled.value }
        await worker.answer(1, FakeWorker.token("ya29.first"))
        #expect(try await patient.value == "ya29.first")
        #expect(worker.requests.count == 1)
    }

    @Test("An error is not kept")
    func errorNotKept() async throws {
        let tokens = try worker.client()
        let first = Task { try await tokens.token(for: "alice") }
        await worker.fail(1, with: UnixSocketError.timedOut)
        await #expect(throws: TokenError.unreachable(description: "no response came in time")) { try await first.value }
        async let second = tokens.token(for: "alice")
        await worker.answer(2, FakeWorker.token("ya29.first"))
        #expect(try await second.value == "ya29.first")
    }

    /// Waits for calls that have no event of their own: they wait in the client.
    private func waitForWaitingCalls(_ count: Int, of tokens: WorkerTokens) async {
        while await tokens.waitingCalls < count { await Task.yield() }
    }
}

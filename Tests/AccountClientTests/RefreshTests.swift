import AccountClient
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite("Refreshing", .timeLimit(.minutes(10)))
struct RefreshTests {
    private let store = InMemoryTokenStore()

    @Test("Tokens are refreshed if less than a minute is left", arguments: [(61, 0), (60, 0), (59, 1), (-5, 1)])
    func dueRefresh(secondsLeft: Int, refreshes: Int) async throws {
        let backend = try Backend()
        try backend.signIn(into: store, secondsLeft: secondsLeft)
        try await backend.client(store).refreshTokensIfNeeded()
        #expect(backend.refreshes == refreshes)
        #expect(store.load(.refreshToken) == "refresh-\(1 + refreshes)")
    }

    @Test(
        "A token without a readable expiry is used until the server refuses it",
        arguments: ["opaque", "a.b.c", "..", ""]
    )
    func unreadableToken(token: String) async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        store.save(token, for: .accessToken)
        let client = try backend.client(store)
        try await client.refreshTokensIfNeeded()
        #expect(backend.refreshes == 0)
        #expect(try await client.status() == 200)
        #expect(backend.refreshes == 1)
    }

    @Test("A forced refresh ignores the time that is left, and stores both tokens")
    func forcedRefresh() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        let before = store.load(.accessToken)
        try await backend.client(store).forceRefresh()
        #expect(backend.refreshes == 1)
        #expect(store.load(.accessToken) != before)
        #expect(store.load(.refreshToken) == "refresh-2")
    }

    @Test("A hundred concurrent refused calls share one refresh, and each is sent once more")
    func sharedRefresh() async throws {
        let gate = Gate()
        let backend = try Backend { request in
            if request.line == "POST /api/auth/refresh" { gate.pass() }
            return nil
        }
        try backend.signIn(into: store)
        backend.refuseAccessToken()
        let client = try backend.client(store)
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 1...100 { group.addTask { try await client.status(of: "things/\(number)") } }
            await backend.waitForRequests(101)
            gate.open()
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses == Array(repeating: 200, count: 100))
        #expect(backend.refreshes == 1)
        #expect(backend.requests.count == 201)
    }

    @Test("A call that was refused with an older token than the stored one uses the stored one, without a refresh")
    func olderToken() async throws {
        let gate = Gate()
        let backend = try Backend { request in
            guard request.line == "GET /slow", request.bearer?.hasSuffix("access-1") == true else { return nil }
            gate.pass()
            return nil
        }
        try backend.signIn(into: store)
        let client = try backend.client(store)
        async let slow = client.status(of: "slow")
        await backend.waitForRequests(1)
        try await client.forceRefresh()
        gate.open()
        #expect(try await slow == 200)
        #expect(backend.refreshes == 1)
    }

    @Test("A refused refresh signs out, and every call that waits for it gets the error")
    func refusedRefresh() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        backend.endSession()
        let client = try backend.client(store)
        let calls = (1...5).map { _ in Task { try await client.status() } }
        for call in calls { await #expect(throws: AccountError.signedOut) { try await call.value } }
        #expect(store.load(.accessToken) == nil)
        #expect(store.load(.refreshToken) == nil)
        #expect(backend.refreshes == 1)
        await #expect(throws: AccountError.signedOut) { try await client.status() }
        await #expect(throws: AccountError.signedOut) { try await client.refreshTokensIfNeeded() }
    }

    @Test("A failing server does not sign the user out", arguments: [400, 403, 404, 429, 500, 502, 503])
    func failingServer(status: Int) async throws {
        let backend = try Backend { request in
            request.line == "POST /api/auth/refresh" ? answer("<html>", status: "\(status) Failing") : nil
        }
        try backend.signIn(into: store)
        backend.refuseAccessToken()
        let client = try backend.client(store)
        await #expect(throws: AccountError.refused(status: status, code: nil, message: nil)) {
            try await client.status()
        }
        #expect(store.load(.refreshToken) == "refresh-1")
        #expect(try await client.isSignedIn)
    }

    @Test(
        "A 401 other than the server's refusal of the refresh token does not sign the user out",
        arguments: [
            "", "<html>", "{}", #"{"message":"Unauthorized"}"#, #"{"detail":"Not authenticated"}"#,
            #"{"error":{"code":"INVALID_TOKEN","message":"The token is not valid"}}"#,
        ]
    )
    func foreignRefusal(body: String) async throws {
        let backend = try Backend { request in
            request.line == "POST /api/auth/refresh" ? answer(body, status: "401 Unauthorized") : nil
        }
        try backend.signIn(into: store)
        backend.refuseAccessToken()
        let client = try backend.client(store)
        await #expect {
            try await client.status()
        } throws: {
            guard case .refused(status: 401, _, _) = $0 as? AccountError else { return false }
            return true
        }
        #expect(store.load(.refreshToken) == "refresh-1")
        #expect(try await client.isSignedIn)
    }

    @Test(
        "A success without two tokens does not sign the user out",
        arguments: [
            "", "{}", #"{"access_token":"a"}"#, #"{"access_token":"","refresh_token":"r"}"#,
            #"{"access_token":"a","refresh_token":""}"#,
        ]
    )
    func unreadableRefresh(body: String) async throws {
        let backend = try Backend { _ in answer(body) }
        try backend.signIn(into: store)
        let client = try backend.client(store)
        await #expect(throws: AccountError.unreadableResponse(status: 200)) { try await client.forceRefresh() }
        #expect(store.load(.refreshToken) == "refresh-1")
    }

    @Test("A refresh whose response was lost is repeated once")
    func lostResponse() async throws {
        let isFirst = Mutex(true)
        let backend = try Backend { _ in
            isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst ? [.close] : nil
            }
        }
        try backend.signIn(into: store)
        try await backend.client(store).forceRefresh()
        #expect(backend.refreshes == 2)
        #expect(store.load(.refreshToken) == "refresh-2")
    }

    @Test(
        "A refresh is repeated once if its response took half a minute, also by a clock that was set",
        arguments: [
            (0, "late"), (29, "late"), (-29, "late"), (30, "refresh-2"), (3600, "refresh-2"), (-30, "refresh-2"),
        ]
    )
    func oldResponse(seconds: Int, stored: String) async throws {
        let gate = Gate()
        let isFirst = Mutex(true)
        let backend = try Backend { _ in
            let wasFirst = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            guard wasFirst else { return nil }
            gate.pass()
            return Backend.tokens(("late", "late"))
        }
        try backend.signIn(into: store)
        let client = try backend.client(store)
        let refreshing = Task { try await client.forceRefresh() }
        await backend.waitForRequests(1)
        backend.advance(bySeconds: seconds)
        gate.open()
        try await refreshing.value
        #expect(store.load(.refreshToken) == stored)
        #expect(backend.refreshes == (stored == "late" ? 1 : 2))
    }

    @Test("A missing network does not sign the user out")
    func unreachableServer() async throws {
        let backend = try Backend { _ in [.close] }
        try backend.signIn(into: store)
        let client = try backend.client(store)
        await #expect {
            try await client.forceRefresh()
        } throws: {
            guard case .unreachable = $0 as? AccountError else { return false }
            return true
        }
        #expect(try await client.isSignedIn)
        #expect(store.load(.refreshToken) == "refresh-1")
    }

    @Test("A cancelled caller returns immediately, and the refresh continues for the others")
    func cancelledCaller() async throws {
        let gate = Gate()
        let backend = try Backend { _ in
            gate.pass()
            return nil
        }
        try backend.signIn(into: store)
        let client = try backend.client(store)
        let leaving = Task { try await client.forceRefresh() }
        let staying = Task { try await client.forceRefresh() }
        await backend.waitForRequests(1)
        leaving.cancel()
        await #expect(throws: AccountError.cancelled) { try await leaving.value }
        gate.open()
        try await staying.value
        #expect(backend.refreshes == 1)
        #expect(store.load(.refreshToken) == "refresh-2")
    }

    @Test("A refresh that all callers have left is still stored")
    func allCallersLeft() async throws {
        let gate = Gate()
        let backend = try Backend { _ in
            gate.pass()
            return nil
        }
        try backend.signIn(into: store)
        let client = try backend.client(store)
        let leaving = Task { try await client.forceRefresh() }
        await backend.waitForRequests(1)
        leaving.cancel()
        await #expect(throws: AccountError.cancelled) { try await leaving.value }
        async let joined: Void = client.refreshTokensIfNeeded()
        gate.open()
        try await joined
        try await client.forceRefresh()
        #expect(store.load(.refreshToken) == "refresh-3")
    }
}

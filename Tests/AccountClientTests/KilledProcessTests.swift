import AccountClient
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite("A process that is killed", .timeLimit(.minutes(1)))
struct KilledProcessTests {
    /// The point at which the process of a refresh ends.
    enum Step: CaseIterable {
        case beforeSending, requestLost, responseLost, beforeStoring, storedOneToken, storedBoth
    }

    private let store = InMemoryTokenStore()

    @Test(
        "A process that is killed at any step of a refresh restarts with a working session",
        arguments: Step.allCases,
        [1, 12, 3600, 86_400]
    )
    func refresh(step: Step, secondsLater: Int) async throws {
        let isDown = Mutex(step == .requestLost)
        let backend = try Backend { _ in isDown.withLock { $0 } ? [.close] : nil }
        try backend.signIn(into: store)
        let writes: Int? =
            switch step {
            case .beforeStoring: 0
            case .storedOneToken: 1
            default: nil
            }
        let dying = MortalTokenStore(store, dyingAfter: writes)
        if step == .beforeSending { dying.kill() }
        backend.loseResponses(step == .responseLost)
        let client = try backend.client(dying)
        // A killed process does not have an outcome.
        _ = await Task { try await client.forceRefresh() }.result
        dying.kill()
        backend.loseResponses(false)
        isDown.withLock { $0 = false }
        backend.advance(bySeconds: secondsLater)

        let restarted = try backend.client(store)
        try await restarted.refreshTokensIfNeeded()
        #expect(try await restarted.status() == 200)
        backend.advance(bySeconds: secondsLater)
        try await restarted.forceRefresh()
        #expect(try await restarted.status() == 200)
    }

    @Test("A process that is killed during a sign-in never leaves tokens of two users together", arguments: 0...3)
    func signIn(writes: Int) async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        let dying = MortalTokenStore(store, dyingAfter: writes)
        let client = try backend.client(dying)
        _ = await Task { try await client.signIn(googleAccessToken: "of another user") }.result
        let refreshToken = try #require(store.load(.refreshToken))
        let accessToken = store.load(.accessToken)
        #expect(accessToken == nil || accessToken?.last == refreshToken.last)
        #expect(refreshToken == (writes < 2 ? "refresh-1" : "refresh-2"))
    }

    @Test(
        "A process that is killed during a log-out is signed out, or still signed in with both tokens",
        arguments: 0...2
    )
    func logout(writes: Int) async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        let dying = MortalTokenStore(store, dyingAfter: writes)
        let client = try backend.client(dying)
        _ = await Task { try await client.logout() }.result
        #expect(try await backend.client(store).isSignedIn == (writes == 0))
    }
}

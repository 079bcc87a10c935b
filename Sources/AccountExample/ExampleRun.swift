import AccountClient
import Foundation

/// A run of an app from the sign-in to the log-out, with a line of output for each step.
struct ExampleRun {
    let baseURL: URL
    private let tokens = CountingTokenStore()

    func run(googleAccessToken: String) async throws {
        let client = try AccountClient(baseURL: baseURL, tokens: tokens)
        try await client.signIn(googleAccessToken: googleAccessToken)
        AccountExample.say("signed in")

        let user = try await client.fetchCurrentUser()
        AccountExample.say("the backend knows user \(user.id), \(user.isActive ? "active" : "not active")")

        try await repeatRefusedCall()
        try await refreshOnceForMany()

        let last = try AccountClient(baseURL: baseURL, tokens: tokens)
        let isConfirmed = try await last.logout()
        guard isConfirmed else { throw ExampleError(description: "the server did not confirm the log-out") }
        guard try await !last.isSignedIn else {
            throw ExampleError(description: "tokens are still stored after the log-out")
        }
        AccountExample.say("logged out")
    }

    private func repeatRefusedCall() async throws {
        let client = try clientWithRefusedToken()
        let before = tokens.pairsSaved
        _ = try await client.fetchCurrentUser()
        try expectOneRefresh(since: before)
        AccountExample.say("a call with a refused access token was answered after one refresh and one retry")
    }

    private func refreshOnceForMany() async throws {
        let client = try clientWithRefusedToken()
        let before = tokens.pairsSaved
        try await withThrowingTaskGroup { group in
            for _ in 1...20 { group.addTask { _ = try await client.fetchCurrentUser() } }
            try await group.waitForAll()
        }
        try expectOneRefresh(since: before)
        AccountExample.say("20 calls at once with a refused access token were answered after one refresh")
    }

    /// Returns a client as after the app's next start, whose stored access token the server refuses like an expired
    /// one.
    private func clientWithRefusedToken() throws -> AccountClient {
        try tokens.corruptAccessToken()
        return try AccountClient(baseURL: baseURL, tokens: tokens)
    }

    private func expectOneRefresh(since before: Int) throws {
        let count = tokens.pairsSaved - before
        guard count == 1 else { throw ExampleError(description: "\(count) refreshes instead of one") }
    }
}

/// Keeps the tokens in memory, and counts the saved pairs.
///
/// `count` is only used under `lock`, so the class is safe to share.
final class CountingTokenStore: TokenStore, @unchecked Sendable {
    private let tokens = InMemoryTokenStore()
    private let lock = NSLock()
    private var count = 0

    /// The number of saved pairs: one for the sign-in and one for each refresh.
    var pairsSaved: Int { lock.withLock { count } }

    func load(_ key: TokenKey) -> String? { tokens.load(key) }

    func save(_ token: String, for key: TokenKey) {
        tokens.save(token, for: key)
        if key == .refreshToken { lock.withLock { count += 1 } }
    }

    func remove(_ key: TokenKey) { tokens.remove(key) }

    /// Corrupts the signature of the stored access token and leaves its claims, so that only the server refuses it.
    func corruptAccessToken() throws {
        guard let token = tokens.load(.accessToken), let dot = token.lastIndex(of: ".") else {
            throw ExampleError(description: "no access token is stored")
        }
        let signature = token[token.index(after: dot)...]
        tokens.save(token[...dot] + String(signature.reversed()), for: .accessToken)
    }
}

import AccountClient
import Foundation

/// A run of an app from the sign-in to the log-out, with a line of output for each step.
struct ExampleRun {
    /// A step with an unexpected result.
    struct UnexpectedResult: Error, CustomStringConvertible {
        let description: String
    }

    private let baseURL: URL
    private let tokens = CountingTokenStore()

    init(baseURL: URL) {
        self.baseURL = baseURL
    }

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
        guard isConfirmed else { throw UnexpectedResult(description: "the server did not confirm the log-out") }
        guard try await !last.isSignedIn else {
            throw UnexpectedResult(description: "tokens are still stored after the log-out")
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
        guard count == 1 else { throw UnexpectedResult(description: "\(count) refreshes instead of one") }
    }
}

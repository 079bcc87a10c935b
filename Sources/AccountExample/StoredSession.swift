import AccountClient
import Foundation

/// One start of an app whose tokens outlive it.
struct StoredSession {
    /// The action of the app in this start.
    enum Action: String, CaseIterable {
        case signIn = "sign-in"
        case call
        case refresh
        case logOut = "log-out"
    }

    private let client: AccountClient

    init(baseURL: URL, folder: URL) throws {
        client = try AccountClient(baseURL: baseURL, tokens: try FileTokenStore(folder: folder))
    }

    func run(_ action: Action) async throws {
        switch action {
        case .signIn:
            try await client.signIn(googleAccessToken: try AccountExample.readGoogleAccessToken())
            AccountExample.say("signed in")
        case .call:
            let user = try await client.fetchCurrentUser()
            AccountExample.say("the backend knows user \(user.id)")
        case .refresh:
            try await client.forceRefresh()
            AccountExample.say("refreshed")
        case .logOut:
            let isConfirmed = try await client.logout()
            AccountExample.say(isConfirmed ? "logged out" : "logged out here; the server did not confirm")
        }
    }
}

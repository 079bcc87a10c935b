import AccountClient
import Foundation
import FoundationNetworking

/// The code of the articles in AccountClient.docc that needs no SDK of Google. `ArticleTests` compares both.
enum ArticleSamples {
    static let gmail = "https://www.googleapis.com/auth/gmail.readonly"

    static func signInWithIDToken(_ client: AccountClient, askGoogle: (String) async throws -> String) async throws {
        let nonce = AccountClient.makeNonce()
        let idToken = try await askGoogle(nonce)
        try await client.signIn(googleIDToken: idToken, nonce: nonce)
    }

    static func call(_ client: AccountClient) async throws -> Int {
        let request = URLRequest(url: client.baseURL.appendingPathComponent("v1/things"))
        let (data, response) = try await client.perform(request)
        return data.count + response.statusCode
    }

    static func openSocket(_ client: AccountClient, at socketURL: URL) async throws -> URLRequest {
        var handshake = URLRequest(url: socketURL)
        handshake.setValue("Bearer \(try await client.accessToken())", forHTTPHeaderField: "Authorization")
        return handshake
    }

    static func showUser(_ client: AccountClient, show: (String, String?) -> Void) async throws {
        if let user = try await client.currentUser {
            show(user.id, user.email)
        }
        let profile = try await client.fetchCurrentUser()
        show(profile.id, profile.name)
    }

    static func signOut(_ client: AccountClient) async throws {
        try await client.logout()
        try await client.deleteAccount()
    }

    static func addScopes(
        _ client: AccountClient,
        askUser: @escaping @Sendable (AccountClient.ScopeRequest) async throws -> GoogleTokens,
        show: (String) -> Void
    ) async throws {
        let refused = try await client.addScopes([gmail]) { request in
            try await askUser(request)
        }
        if !refused.isEmpty { show("Without this permission there is no mail.") }
    }

    static func showConnections(_ client: AccountClient, show: (String?, String) -> Void) async throws {
        for connection in try await client.connections() {
            if let message = connection.userMessage { show(connection.googleEmail, message) }
        }
    }

    static func addAccount(
        _ client: AccountClient,
        connection: AccountClient.Connection,
        askUser: @escaping @Sendable (AccountClient.ScopeRequest) async throws -> GoogleTokens
    ) async throws {
        _ = try await client.addScopes([gmail], connection: .new) { request in
            try await askUser(request)
        }
        try await client.disconnectGoogle(connection.id)
    }

    static func follow(
        _ client: AccountClient,
        home: (AccountClient.CurrentUser?) -> Void,
        signIn: (Bool) -> Void
    ) async {
        func showHome(of user: AccountClient.CurrentUser?) { home(user) }
        func showSignIn(isUnexpected: Bool) { signIn(isUnexpected) }
        for await change in client.sessionChanges {
            switch change.state {
            case .signedIn: showHome(of: change.user)
            case .signedOut: showSignIn(isUnexpected: change.cause == .sessionEnded)
            }
        }
    }

    static func disconnect(_ client: AccountClient, show: (String) -> Void) async {
        do {
            try await client.disconnectGoogle()
        } catch {
            if let message = error.userMessage { show(message) }
        }
    }
}

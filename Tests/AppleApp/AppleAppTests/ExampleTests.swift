import AccountClient
import Foundation
import FoundationNetworking
import GoogleSignIn
import Observation
import Synchronization
import Testing
import UIKit

@testable import Example

@Suite("The example app", .serialized)
@MainActor
struct ExampleTests {
    nonisolated private static let read = "https://www.googleapis.com/auth/gmail.readonly"
    private let google = GIDSignIn.sharedInstance
    private let backend = Backend()

    init() {
        google.currentUser = nil
        google.calls = []
        google.hints = []
        google.refused = []
    }

    private func session() throws -> Session {
        let url = try #require(URL(string: "https://api.example.com"))
        let now: @Sendable () -> Date = { Date(timeIntervalSince1970: 1_800_000_000) }
        return Session(account: try AccountClient(baseURL: url, transport: backend.transport, now: now))
    }

    @Test("One consent signs in and connects Google, if the user grants it", arguments: [true, false])
    func firstConnection(isGranted: Bool) async throws {
        google.refused = isGranted ? [] : [Self.read]
        let session = try session()
        await session.run { account in try await signIn(to: account, presenter: UIViewController()) }
        #expect(session.failure == nil)
        #expect(session.profile?.email == "a@example.com")
        #expect(google.calls == ["signIn"])
        #expect(backend.lines.contains("POST /v1/connections/google") == isGranted)
    }

    @Test("The views follow the session")
    func states() async throws {
        let session = try session()
        let following = Task { await session.follow() }
        await wait(for: session, until: .signedOut)
        await session.run { account in try await account.signIn(googleAccessToken: "token") }
        await wait(for: session, until: .signedIn)
        #expect(session.profile != nil)
        await session.run { account in try await account.deleteAccount() }
        await wait(for: session, until: .signedOut)
        #expect(session.profile == nil)
        #expect(session.failure == nil)
        following.cancel()
        await following.value
    }

    @Test("A user who closes Google's sheet sees no error")
    func cancelled() async throws {
        google.refused = nil
        let session = try session()
        await session.run { account in try await signIn(to: account, presenter: UIViewController()) }
        #expect(session.failure == nil)
        #expect(backend.lines.isEmpty)
    }

    @Test(
        "Google is connected with the SDK's call that works",
        arguments: [
            // The first connection, a reconnection, and a scope that was withdrawn elsewhere.
            (isConnected: false, granted: [], remembered: nil, call: "signIn"),
            (false, [read], [read], "signIn"), (true, ["openid"], [read], "signIn"),
            (true, ["openid"], ["openid"], "addScopes"), (true, ["openid"], nil, "signIn"),
        ] as [(isConnected: Bool, granted: [String], remembered: [String]?, call: String)]
    )
    func consent(isConnected: Bool, granted: [String], remembered: [String]?, call: String) async throws {
        backend.set(isConnected: isConnected, scopes: granted)
        google.currentUser = remembered.map { GIDGoogleUser(grantedScopes: $0) }
        let session = try session()
        try await session.account.signIn(googleAccessToken: "token")
        let presenter = UIViewController()
        let refused = try await session.account.addScopes([Self.read]) { request in
            try await askGoogle(request, presenter: presenter)
        }
        #expect(refused.isEmpty)
        #expect(google.calls == [call])
        let body = try #require(backend.bodies.last)
        #expect(body.contains(#""refresh_token":"refresh""#) && body.contains(#""refresh_token_expires_in":604800"#))
    }

    @Test(
        "Google is asked for the account of the connection, and lets the user choose a new one",
        arguments: [
            (.default, "addScopes", []), (.id("c7"), "signIn", ["b@gmail.com"]), (.new, "signIn", [nil]),
        ] as [(AccountClient.ConnectionTarget, String, [String?])]
    )
    func account(target: AccountClient.ConnectionTarget, call: String, hints: [String?]) async throws {
        backend.set(isConnected: true, scopes: ["openid"])
        google.currentUser = GIDGoogleUser(grantedScopes: ["openid"])
        let session = try session()
        try await session.account.signIn(googleAccessToken: "token")
        let presenter = UIViewController()
        let refused = try await session.account.addScopes([Self.read], connection: target) { request in
            try await askGoogle(request, presenter: presenter)
        }
        #expect(refused.isEmpty)
        #expect(google.calls == [call])
        #expect(google.hints == hints)
    }

    /// Waits for a state that another task of this actor sets.
    private func wait(for session: Session, until state: AccountClient.SessionState) async {
        while session.state != state {
            await withCheckedContinuation { continuation in
                withObservationTracking {
                    _ = session.state
                } onChange: {
                    continuation.resume()
                }
            }
            // The change is complete after this turn of the actor.
            await Task.yield()
        }
    }
}

/// The backend's responses, without a network.
private final class Backend: Sendable {
    private struct State {
        var isConnected = false
        var scopes: [String] = []
        var requests: [(line: String, body: String)] = []
    }

    private let state = Mutex(State())

    var lines: [String] { state.withLock { $0.requests.map(\.line) } }
    var bodies: [String] { state.withLock { $0.requests.map(\.body) } }

    func set(isConnected: Bool, scopes: [String]) {
        state.withLock { ($0.isConnected, $0.scopes) = (isConnected, scopes) }
    }

    var transport: Transport {
        { request, _ throws(AccountError) in
            let line = "\(request.httpMethod ?? "") \(request.url?.path ?? "")"
            let body = String(decoding: request.httpBody ?? Data(), as: UTF8.self)
            let content = self.state.withLock { state in
                state.requests.append((line, body))
                return Self.content(line, state)
            }
            let url = request.url ?? URL(fileURLWithPath: "/")
            guard let content,
                let http = HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: nil)
            else { throw .unreachable(.badURL) }
            return (Data(content.utf8), http)
        }
    }

    private static func content(_ line: String, _ state: State) -> String? {
        let scopes = state.scopes.map { "\"\($0)\"" }.joined(separator: ",")
        switch line {
        case "POST /api/auth/mobile/google": return #"{"access_token":"a.b.c","refresh_token":"r"}"#
        case "GET /v1/user/me":
            return """
                {"data":{"name":"","email":"a@example.com","created_on":"2026-11-24",
                "gmail_account_connected":\(state.isConnected),
                "gmail_connection":{"state":"active","google_email":"a@gmail.com","granted_scopes":[\(scopes)]},
                "connections":[
                {"id":"default","state":"active","google_email":"a@gmail.com","granted_scopes":[\(scopes)]},
                {"id":"c7","state":"active","google_email":"b@gmail.com","granted_scopes":[]}]}}
                """
        case "POST /v1/auth/gmail-tokens":
            return """
                {"data":{"google_email":"a@gmail.com","scope":"https://www.googleapis.com/auth/gmail.readonly",
                "account_switch":false,"message":""}}
                """
        case "POST /v1/connections/google":
            return """
                {"data":{"connection":{"id":"default","state":"active","google_email":"a@gmail.com",
                "granted_scopes":["https://www.googleapis.com/auth/gmail.readonly"]},"account_switch":false}}
                """
        case "DELETE /v1/user/me", "DELETE /v1/connections/default": return #"{"data":{}}"#
        default: return nil
        }
    }
}

import AccountClient
import Foundation
import TestSupport
import Testing

@Suite("Scopes of the user's Google accounts", .timeLimit(.minutes(10)))
struct ScopeTests {
    private typealias Responses = ConnectionResponses

    private let store = InMemoryTokenStore()
    private static let read = ConnectionResponses.read
    private static let send = ConnectionResponses.send

    private func client(
        profile: String = "",
        connected: String = "",
        stored: String = ""
    ) throws -> (AccountClient, Backend) {
        let backend = try Backend { request in
            switch request.line {
            case "GET /v1/user/me": answer(profile)
            case "POST /v1/connections/google": answer(connected, status: "201 Created")
            case "POST /v1/auth/gmail-tokens": answer(stored, status: "201 Created")
            default: nil
            }
        }
        try backend.signIn(into: store)
        return (try backend.client(store), backend)
    }

    @Test(
        "A scope is missing if it was not granted, or if its grant no longer works",
        arguments: [
            (true, [read], [read], []), (true, [read], [send, read, send], [send]),
            (true, [], [read, send], [read, send]),
            (true, nil, [read], [read]), (false, nil, [read], [read]), (false, [read], [read], [read]),
            (true, ["https://www.googleapis.com/auth/userinfo.email"], ["email", "profile"], ["profile"]),
        ] as [(Bool, [String]?, [String], [String])]
    )
    func missing(isConnected: Bool, granted: [String]?, needed: [String], missing: [String]) async throws {
        let (client, backend) = try client(profile: Responses.profile(isConnected: isConnected, scopes: granted))
        #expect(try await client.missingScopes(needed: needed) == missing)
        #expect(backend.requests.count == 1)
    }

    @Test("The user is asked only for missing scopes, and refused ones are still missing")
    func adding() async throws {
        let (client, backend) = try client(
            profile: Responses.profile(isConnected: true, scopes: ["openid"]),
            stored: Responses.stored(scope: "openid \(Self.read)")
        )
        let none = try await client.addScopes(["openid"]) { _ in
            Issue.record("the user was asked although no scope was missing")
            return GoogleTokens(accessToken: "unrequested")
        }
        #expect(none.isEmpty)
        let refused = try await client.addScopes(["openid", Self.read, Self.send]) { request in
            #expect(request.scopes == [Self.read, Self.send])
            #expect(!request.needsSignIn)
            #expect(request.connection == .default)
            #expect(request.googleEmail == "a@gmail.com")
            return GoogleTokens(accessToken: "widened", scopes: ["openid", Self.read])
        }
        #expect(refused == [Self.send])
        // The route that every backend has.
        #expect(backend.requests.last?.line == "POST /v1/auth/gmail-tokens")
        #expect(backend.requests.last?.body.contains("widened") == true)
    }

    @Test("A user who declines keeps the grant unchanged")
    func declining() async throws {
        struct Declined: Error {}
        let (client, backend) = try client(profile: Responses.profile(isConnected: true, scopes: []))
        await #expect(throws: Declined.self) { try await client.addScopes([Self.read]) { _ in throw Declined() } }
        #expect(backend.requests.map(\.line) == ["GET /v1/user/me"])
    }

    @Test("Scopes that were granted while another user signed in go to neither user")
    func addingDuringSignIn() async throws {
        let (client, backend) = try client(profile: Responses.profile(isConnected: true, scopes: []))
        await #expect(throws: AccountError.sessionReplaced) {
            try await client.addScopes([Self.read]) { _ in
                try await client.signIn(googleAccessToken: "second")
                return GoogleTokens(accessToken: "of-the-first")
            }
        }
        #expect(!backend.requests.contains { $0.line.hasPrefix("POST /v1/") })
    }

    @Test("One more account is asked for every scope, whatever the others have")
    func newAccount() async throws {
        let (client, backend) = try client(
            connected: Responses.connected(Responses.connection("c7", email: "b@gmail.com", scopes: [Self.read]))
        )
        let refused = try await client.addScopes([Self.read, Self.send, Self.read], connection: .new) { request in
            #expect(request.scopes == [Self.read, Self.send])
            #expect(request.needsSignIn)
            #expect(request.connection == .new)
            #expect(request.googleEmail == nil)
            return GoogleTokens(accessToken: "of-b")
        }
        #expect(refused == [Self.send])
        #expect(backend.requests.map(\.line) == ["POST /v1/connections/google"])
        #expect(backend.requests.last?.body.contains(#""connection":"new""#) == true)
    }

    @Test(
        "Another connection is asked by its own account, scopes and state",
        arguments: [
            ("active", [send], false), ("reauth_required", [read, send], true), ("later", [read, send], true),
        ] as [(String, [String], Bool)]
    )
    func otherConnection(state: String, missing: [String], needsSignIn: Bool) async throws {
        let connections = [
            Responses.connection("default", scopes: [Self.read, Self.send]),
            Responses.connection("c7", state: state, email: "b@gmail.com", scopes: [Self.read]),
        ]
        let (client, backend) = try client(
            profile: Responses.profile(isConnected: true, connections: connections),
            connected: Responses.connected(Responses.connection("c7", scopes: [Self.read, Self.send]))
        )
        let refused = try await client.addScopes([Self.read, Self.send], connection: .id("c7")) { request in
            #expect(request.scopes == missing)
            #expect(request.needsSignIn == needsSignIn)
            #expect(request.connection == .id("c7"))
            #expect(request.googleEmail == "b@gmail.com")
            return GoogleTokens(accessToken: "of-b")
        }
        #expect(refused.isEmpty)
        #expect(backend.requests.last?.body.contains(#""connection":"c7""#) == true)
    }

    @Test("A switch of the default connection can be refused")
    func refusedSwitch() async throws {
        let backend = try Backend { request in
            request.line == "GET /v1/user/me"
                ? answer(Responses.profile(isConnected: true, scopes: []))
                : answer(
                    #"{"error":{"code":"ACCOUNT_SWITCH","message":"","expected":"a@gmail.com","found":"b@gmail.com"}}"#,
                    status: "409 Conflict"
                )
        }
        try backend.signIn(into: store)
        let client = try backend.client(store)
        await #expect(throws: AccountError.otherAccount(expected: "a@gmail.com", found: "b@gmail.com")) {
            try await client.addScopes([Self.read], onSwitch: .refuse) { _ in GoogleTokens(accessToken: "of-b") }
        }
        #expect(backend.requests.last?.line == "POST /v1/connections/google")
        #expect(backend.requests.last?.body.contains(#""on_switch":"refuse""#) == true)
    }

    @Test("The default connection can be named, also before it exists")
    func namedDefault() async throws {
        let (client, backend) = try client(
            profile: Responses.profile(isConnected: false, connections: []),
            connected: Responses.connected(Responses.connection("default", scopes: [Self.read]))
        )
        let target = AccountClient.ConnectionTarget.id(AccountClient.Connection.defaultID)
        let refused = try await client.addScopes([Self.read], connection: target) { request in
            #expect(request.needsSignIn)
            #expect(request.googleEmail == nil)
            return GoogleTokens(accessToken: "first")
        }
        #expect(refused.isEmpty)
        #expect(backend.requests.last?.body.contains(#""connection":"default""#) == true)
    }

    @Test("The user is not asked for a connection that does not exist", arguments: ["c8", "../user/me"])
    func unknownConnection(id: String) async throws {
        let (client, backend) = try client(profile: Responses.profile(isConnected: true, scopes: []))
        await #expect(throws: AccountError.unknownConnection) {
            try await client.addScopes([Self.read], connection: .id(id)) { _ in
                Issue.record("the user was asked")
                return GoogleTokens(accessToken: "unrequested")
            }
        }
        #expect(backend.requests.map(\.line) == ["GET /v1/user/me"])
    }
}

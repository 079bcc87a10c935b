import AccountClient
import Foundation
import TestSupport
import Testing

@Suite("The user's Gmail", .timeLimit(.minutes(10)))
struct GmailTests {
    private let store = InMemoryTokenStore()
    private static let read = "https://www.googleapis.com/auth/gmail.readonly"
    private static let send = "https://www.googleapis.com/auth/gmail.send"

    static func profile(isConnected: Bool, scopes: [String]?) -> String {
        let connection = scopes.map {
            """
            {"state":"\(isConnected ? "active" : "disconnected")","reason":\(isConnected ? "null" : #""invalid_grant""#),
            "since":"2026-11-21T03:17:39Z","verified_at":null,"expires_at":"2026-11-28T03:17:39Z","google_email":"a@gmail.com",
            "granted_scopes":[\($0.map { "\"\($0)\"" }.joined(separator: ","))]}
            """
        }
        return """
            {"message":"User profile retrieved successfully","code":200,"data":{"name":"","email":"a@example.com",
            "created_on":"2024-11-01","created_at":"2024-11-01T00:00:09Z","gmail_account_connected":\(isConnected),
            "gmail_connection":\(connection ?? "null")}}
            """
    }

    static func stored(scope: String, more: String = "") -> String {
        """
        {"message":"Gmail OAuth tokens stored successfully!","code":201,"data":{"google_email":"a@gmail.com",
        "scope":"\(scope)","account_switch":false,"message":"First Gmail connection"\(more)}}
        """
    }

    private func client(profile: String = "", stored: String = "") throws -> (AccountClient, Backend) {
        let backend = try Backend { request in
            switch request.line {
            case "GET /v1/user/me": answer(profile)
            case "POST /v1/auth/gmail-tokens": answer(stored, status: "201 Created")
            case "DELETE /v1/auth/gmail-tokens": answer(#"{"message":"","code":200,"data":{}}"#)
            default: nil
            }
        }
        try backend.signIn(into: store)
        return (try backend.client(store), backend)
    }

    @Test("The answer to a code says if the refresh token is missing", arguments: [nil, false, true])
    func refreshTokenMissing(isMissing: Bool?) async throws {
        let more = isMissing.map { #","refresh_token_missing":\#($0)"# } ?? ""
        let (client, backend) = try client(stored: Self.stored(scope: "openid", more: more))
        let grant = try await client.storeGoogleTokens(GoogleTokens(accessToken: "a", serverAuthCode: "c"))
        #expect(grant.isRefreshTokenMissing == isMissing)
        #expect(backend.requests.count == 1)
    }

    @Test("The SDK's tokens are posted under the API's names, without those that are nil")
    func storing() async throws {
        let (client, backend) = try client(stored: Self.stored(scope: "openid \(Self.read)"))
        let grant = try await client.storeGoogleTokens(
            GoogleTokens(
                accessToken: "a",
                refreshToken: "r",
                expiresIn: 3599,
                refreshTokenExpiresIn: 604_799,
                scopes: ["openid"],
                email: "a@gmail.com"
            )
        )
        #expect(grant.googleEmail == "a@gmail.com")
        #expect(grant.grantedScopes == ["openid", Self.read])
        #expect(!grant.isAccountSwitch)
        #expect(grant.message == "First Gmail connection")
        try await client.storeGoogleTokens(GoogleTokens(accessToken: "a"))
        try await client.storeGoogleTokens(GoogleTokens(accessToken: "a", serverAuthCode: "c"))
        let bodies = try backend.requests.map {
            try JSONSerialization.jsonObject(with: Data($0.body.utf8)) as? NSDictionary
        }
        #expect(
            bodies == [
                [
                    "access_token": "a", "refresh_token": "r", "expires_in": 3599,
                    "refresh_token_expires_in": 604_799, "scope": ["openid"], "email": "a@gmail.com",
                ],
                ["access_token": "a"], ["access_token": "a", "server_auth_code": "c"],
            ]
        )
    }

    @Test("The profile has the state of the connection")
    func connectedProfile() async throws {
        let (client, backend) = try client(profile: Self.profile(isConnected: false, scopes: [Self.read]))
        let profile = try await client.profile()
        #expect(profile.email == "a@example.com")
        #expect(profile.createdOn == Date(timeIntervalSince1970: 1_730_419_200))
        #expect(profile.createdAt == Date(timeIntervalSince1970: 1_730_419_209))
        #expect(!profile.isGmailConnected)
        #expect(profile.gmailConnection?.state == "disconnected")
        #expect(profile.gmailConnection?.reason == "invalid_grant")
        #expect(profile.gmailConnection?.grantedScopes == [Self.read])
        #expect(profile.gmailConnection?.verifiedAt == nil)
        #expect(profile.gmailConnection?.expiresAt == Date(timeIntervalSince1970: 1_795_835_859))
        #expect(backend.requests.count == 1)
    }

    @Test("Disconnecting sends the request to the backend")
    func disconnecting() async throws {
        let (client, backend) = try client()
        try await client.disconnectGmail()
        #expect(backend.requests.map(\.line) == ["DELETE /v1/auth/gmail-tokens"])
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
        let (client, backend) = try client(profile: Self.profile(isConnected: isConnected, scopes: granted))
        #expect(try await client.missingScopes(needed: needed) == missing)
        #expect(backend.requests.count == 1)
    }

    @Test("The user is asked only for missing scopes, and refused ones are still missing")
    func adding() async throws {
        let (client, backend) = try client(
            profile: Self.profile(isConnected: true, scopes: ["openid"]),
            stored: Self.stored(scope: "openid \(Self.read)")
        )
        let none = try await client.addScopes(["openid"]) { _ in
            Issue.record("the user was asked although no scope was missing")
            return GoogleTokens(accessToken: "unrequested")
        }
        #expect(none.isEmpty)
        let refused = try await client.addScopes(["openid", Self.read, Self.send]) { request in
            #expect(request.scopes == [Self.read, Self.send])
            #expect(!request.needsSignIn)
            return GoogleTokens(accessToken: "widened", scopes: ["openid", Self.read])
        }
        #expect(refused == [Self.send])
        #expect(backend.requests.last?.body.contains("widened") == true)
    }

    @Test("A user who declines keeps the grant unchanged")
    func declining() async throws {
        struct Declined: Error {}
        let (client, backend) = try client(profile: Self.profile(isConnected: true, scopes: []))
        await #expect(throws: Declined.self) { try await client.addScopes([Self.read]) { _ in throw Declined() } }
        #expect(backend.requests.map(\.line) == ["GET /v1/user/me"])
    }

    @Test("Scopes that were granted while another user signed in go to neither user")
    func addingDuringSignIn() async throws {
        let (client, backend) = try client(profile: Self.profile(isConnected: true, scopes: []))
        await #expect(throws: AccountError.sessionReplaced) {
            try await client.addScopes([Self.read]) { _ in
                try await client.signIn(googleAccessToken: "second")
                return GoogleTokens(accessToken: "of-the-first")
            }
        }
        #expect(!backend.requests.contains { $0.line == "POST /v1/auth/gmail-tokens" })
    }
}

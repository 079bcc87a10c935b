import AccountClient
import Foundation
import TestSupport
import Testing

/// Each test that uses a deprecated name is deprecated itself, so that it compiles without a warning. A suite cannot be.
@Suite("The names that say Gmail", .timeLimit(.minutes(10)))
struct FormerNameTests {
    private typealias Responses = ConnectionResponses

    private let store = InMemoryTokenStore()

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

    @available(*, deprecated)
    @Test("Tokens are posted to the route that knows one connection")
    func storing() async throws {
        let scope = "openid \(Responses.read)"
        let (client, backend) = try client(stored: Responses.stored(scope: scope))
        let grant = try await client.storeGoogleTokens(GoogleTokens(accessToken: "a", refreshToken: "r"))
        #expect(grant.googleEmail == "a@gmail.com")
        #expect(grant.scope == scope)
        #expect(grant.grantedScopes == ["openid", Responses.read])
        #expect(!grant.isAccountSwitch)
        #expect(grant.message == "First Gmail connection")
        #expect(grant.isRefreshTokenMissing == nil)
        #expect(backend.requests.map(\.line) == ["POST /v1/auth/gmail-tokens"])
        let request = try #require(backend.requests.first)
        let body = try JSONSerialization.jsonObject(with: Data(request.body.utf8)) as? NSDictionary
        let expected: NSDictionary? = ["access_token": "a", "refresh_token": "r"]
        #expect(body == expected)
    }

    @available(*, deprecated)
    @Test("The response to a code says if the refresh token is missing")
    func refreshTokenMissing() async throws {
        for isMissing in [false, true] {
            let more = #","refresh_token_missing":\#(isMissing)"#
            let (client, backend) = try client(stored: Responses.stored(scope: "openid", more: more))
            let grant: AccountClient.StoredGrant = try await client.storeGoogleTokens(
                GoogleTokens(accessToken: "a", serverAuthCode: "c")
            )
            #expect(grant.isRefreshTokenMissing == isMissing)
            #expect(backend.requests.count == 1)
        }
    }

    @available(*, deprecated)
    @Test("Disconnecting uses the route that knows one connection")
    func disconnecting() async throws {
        let (client, backend) = try client()
        try await client.disconnectGmail()
        #expect(backend.requests.map(\.line) == ["DELETE /v1/auth/gmail-tokens"])
    }

    @available(*, deprecated)
    @Test("The profile has the default connection under its former name")
    func profile() async throws {
        let (client, backend) = try client(profile: Responses.profile(isConnected: true, scopes: [Responses.read]))
        let profile = try await client.profile()
        let connection: AccountClient.GmailConnection? = profile.gmailConnection
        #expect(profile.isGmailConnected)
        #expect(connection?.state == "active")
        #expect(connection == profile.defaultConnection)
        #expect(backend.requests.count == 1)
    }
}

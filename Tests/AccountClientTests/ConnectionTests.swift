import AccountClient
import Foundation
import TestSupport
import Testing

@Suite("The user's Google accounts", .timeLimit(.minutes(10)))
struct ConnectionTests {
    private typealias Responses = ConnectionResponses

    private let store = InMemoryTokenStore()
    private static let tokens = GoogleTokens(accessToken: "ya29.app")

    /// Returns a client of a backend that sends the given response to each request.
    private func client(_ response: String, status: String = "200 OK") throws -> (AccountClient, Backend) {
        let backend = try Backend { _ in answer(response, status: status) }
        try backend.signIn(into: store)
        return (try backend.client(store), backend)
    }

    private func bodies(_ backend: Backend) throws -> [NSDictionary?] {
        try backend.requests.map { try JSONSerialization.jsonObject(with: Data($0.body.utf8)) as? NSDictionary }
    }

    // MARK: Reading

    @Test("All accounts are listed, with their ids")
    func list() async throws {
        let (client, backend) = try client(
            Responses.list([
                Responses.connection("default", scopes: [Responses.read]),
                Responses.connection("c7", state: "suspended", reason: "client_disabled", email: "b@gmail.com"),
            ])
        )
        let connections = try await client.connections()
        #expect(backend.requests.map(\.line) == ["GET /v1/connections"])
        #expect(connections.map(\.id) == ["default", "c7"])
        #expect(connections.map(\.state) == ["active", "suspended"])
        #expect(connections.map(\.reason) == [nil, "client_disabled"])
        #expect(connections.map(\.googleEmail) == ["a@gmail.com", "b@gmail.com"])
        #expect(connections.map(\.grantedScopes) == [[Responses.read], []])
        #expect(connections.map(\.isConnected) == [true, false])
        #expect(connections.allSatisfy { $0.since == Date(timeIntervalSince1970: 1_795_231_059) })
        #expect(connections.allSatisfy { $0.verifiedAt == nil })
        #expect(connections.allSatisfy { $0.expiresAt == Date(timeIntervalSince1970: 1_795_835_859) })
    }

    @Test(
        "A state of a later backend is read, and counts as not connected",
        arguments: [
            ("active", true), ("retrying", true), ("suspended", false), ("reauth_required", false),
            ("disconnected", false), ("paused", false), ("", false),
        ]
    )
    func state(state: String, isConnected: Bool) async throws {
        let connection = Responses.connection("c7", state: state, reason: "later", scopes: ["openid"])
        let (client, backend) = try client(Responses.list([connection]))
        let connections = try await client.connections()
        let read = try #require(connections.first)
        #expect(read.state == state)
        #expect(read.reason == "later")
        #expect(read.isConnected == isConnected)
        #expect(read.missingScopes(needed: ["openid", "email"]) == (isConnected ? ["email"] : ["openid", "email"]))
        #expect(backend.requests.count == 1)
    }

    @Test("The profile has all accounts")
    func profile() async throws {
        let connections = [
            Responses.connection("c7", email: "b@gmail.com"),
            Responses.connection("default", state: "disconnected", reason: "invalid_grant"),
        ]
        let (client, backend) = try client(
            Responses.profile(isConnected: false, former: Responses.connection(), connections: connections)
        )
        let profile = try await client.profile()
        #expect(profile.email == "a@example.com")
        #expect(profile.createdOn == Date(timeIntervalSince1970: 1_730_419_200))
        #expect(profile.createdAt == Date(timeIntervalSince1970: 1_730_419_209))
        #expect(!profile.isConnected)
        #expect(profile.connections.map(\.id) == ["c7", "default"])
        #expect(profile.defaultConnection == profile.connections.last)
        #expect(profile.defaultConnection?.reason == "invalid_grant")
        #expect(backend.requests.count == 1)
    }

    @Test("The profile of a backend that knows one account has that one, if any", arguments: [true, false])
    func olderProfile(isThere: Bool) async throws {
        let connection = isThere ? Responses.connection(scopes: [Responses.read]) : nil
        let (client, backend) = try client(Responses.profile(isConnected: isThere, former: connection))
        let profile = try await client.profile()
        #expect(profile.connections.map(\.id) == (isThere ? ["default"] : []))
        #expect(profile.defaultConnection?.grantedScopes == (isThere ? [Responses.read] : nil))
        #expect(profile.isConnected == isThere)
        #expect(backend.requests.count == 1)
    }

    // MARK: Connecting

    @Test("The SDK's tokens are posted under the API's names, without those that are nil")
    func connecting() async throws {
        let connection = Responses.connection("default", scopes: ["openid", Responses.read])
        let (client, backend) = try client(Responses.connected(connection), status: "201 Created")
        let connected = try await client.connectGoogle(
            GoogleTokens(
                accessToken: "ya29.app",
                refreshToken: "r",
                expiresIn: 3599,
                refreshTokenExpiresIn: 604_799,
                scopes: ["openid"],
                email: "a@gmail.com"
            )
        )
        #expect(connected.connection.id == "default")
        #expect(connected.connection.googleEmail == "a@gmail.com")
        #expect(connected.connection.grantedScopes == ["openid", Responses.read])
        #expect(!connected.isAccountSwitch)
        try await client.connectGoogle(Self.tokens)
        try await client.connectGoogle(GoogleTokens(accessToken: "ya29.app", serverAuthCode: "c"))
        let expected: [NSDictionary?] = [
            [
                "access_token": "ya29.app", "refresh_token": "r", "expires_in": 3599,
                "refresh_token_expires_in": 604_799,
                "scope": ["openid"], "email": "a@gmail.com",
            ],
            ["access_token": "ya29.app"], ["access_token": "ya29.app", "server_auth_code": "c"],
        ]
        let sent = try bodies(backend)
        #expect(sent == expected)
        #expect(backend.requests.allSatisfy { $0.line == "POST /v1/connections/google" })
    }

    @Test("The tokens say which connection they are for, and if it can switch")
    func targets() async throws {
        let connection = Responses.connection("c7", email: "b@gmail.com")
        let (client, backend) = try client(Responses.connected(connection, isSwitch: true), status: "201 Created")
        let connected = try await client.connectGoogle(Self.tokens, connection: .new)
        #expect(connected.connection.id == "c7")
        #expect(connected.isAccountSwitch)
        try await client.connectGoogle(Self.tokens, connection: .id("c7"))
        try await client.connectGoogle(Self.tokens, connection: .id("default"), onSwitch: .refuse)
        try await client.connectGoogle(Self.tokens, connection: .default, onSwitch: .allow)
        let expected: [NSDictionary?] = [
            ["access_token": "ya29.app", "connection": "new"], ["access_token": "ya29.app", "connection": "c7"],
            ["access_token": "ya29.app", "connection": "default", "on_switch": "refuse"], ["access_token": "ya29.app"],
        ]
        let sent = try bodies(backend)
        #expect(sent == expected)
    }

    @Test("The response to a code says if the refresh token is missing", arguments: [nil, false, true])
    func refreshTokenMissing(isMissing: Bool?) async throws {
        let more = isMissing.map { #","refresh_token_missing":\#($0)"# } ?? ""
        let (client, backend) = try client(
            Responses.connected(Responses.connection("default"), more: more),
            status: "201 Created"
        )
        let connected = try await client.connectGoogle(GoogleTokens(accessToken: "ya29.app", serverAuthCode: "c"))
        #expect(connected.isRefreshTokenMissing == isMissing)
        #expect(backend.requests.count == 1)
    }

    // MARK: Disconnecting

    @Test("Disconnecting names the connection, and the default one if the app names none")
    func disconnecting() async throws {
        let (client, backend) = try client(#"{"message":"","code":200,"data":{"connection":"c7"}}"#)
        try await client.disconnectGoogle()
        try await client.disconnectGoogle("c7_A-9")
        #expect(
            backend.requests.map(\.line) == ["DELETE /v1/connections/default", "DELETE /v1/connections/c7_A-9"]
        )
    }

    // MARK: Errors

    @Test(
        "An id that no connection has is not sent: it could name another route, or one more connection",
        arguments: [
            "", ".", "..", "../user/me", "..%2Fuser%2Fme", "%2e%2e", "c7/", "c7?x=1", "c7#x", "c 7", "c7\r\n", "é",
            "new", "google",
        ]
    )
    func malformedID(id: String) async throws {
        let (client, backend) = try client("{}")
        await #expect(throws: AccountError.unknownConnection) { try await client.disconnectGoogle(id) }
        await #expect(throws: AccountError.unknownConnection) {
            try await client.connectGoogle(Self.tokens, connection: .id(id))
        }
        #expect(backend.requests.isEmpty)
    }

    @Test(
        "Each refusal of a connection is an error of its own",
        arguments: [
            (
                409, #""code":"ACCOUNT_MISMATCH","expected":"b@gmail.com","found":"c@gmail.com""#,
                .otherAccount(expected: "b@gmail.com", found: "c@gmail.com")
            ),
            (
                409, #""code":"ACCOUNT_SWITCH","expected":"b@gmail.com","found":"c@gmail.com""#,
                .otherAccount(expected: "b@gmail.com", found: "c@gmail.com")
            ),
            (409, #""code":"ACCOUNT_CONNECTED","connection":"c8""#, .accountIsConnected(connection: "c8")),
            (409, #""code":"TOO_MANY_CONNECTIONS""#, .tooManyConnections),
            (404, #""code":"CONNECTION_NOT_FOUND""#, .unknownConnection),
            // A backend of another version.
            (409, #""code":"ACCOUNT_SWITCH""#, .refused(status: 409, code: "ACCOUNT_SWITCH", message: "m")),
            (409, #""code":"LATER""#, .refused(status: 409, code: "LATER", message: "m")),
            (404, #""code":"NOT_FOUND""#, .refused(status: 404, code: "NOT_FOUND", message: "m")),
        ] as [(Int, String, AccountError)]
    )
    func refusal(status: Int, fields: String, expected: AccountError) async throws {
        let (client, backend) = try client(#"{"error":{\#(fields),"message":"m"}}"#, status: "\(status) Refused")
        await #expect(throws: expected) { try await client.connectGoogle(Self.tokens, connection: .id("c7")) }
        await #expect(throws: expected) { try await client.disconnectGoogle("c7") }
        #expect(backend.requests.map(\.line) == ["POST /v1/connections/google", "DELETE /v1/connections/c7"])
    }

    @Test("The names of the two accounts are shown, and no token")
    func otherAccount() async throws {
        let (client, backend) = try client(
            #"{"error":{"code":"ACCOUNT_MISMATCH","message":"m","expected":"b@gmail.com","found":"secret"}}"#,
            status: "409 Conflict"
        )
        let error = await #expect(throws: AccountError.self) {
            try await client.connectGoogle(GoogleTokens(accessToken: "secret"), connection: .id("c7"))
        }
        #expect(error == .otherAccount(expected: "b@gmail.com", found: "[token]"))
        #expect(error?.description == "This connection belongs to b@gmail.com, and the tokens to [token].")
        #expect(backend.requests.count == 1)
    }
}

import Crypto
import Scheduler
import Storage
import TestSupport
import Testing

@testable import Base
@testable import Routes

/// The user 42 and the accounts of Jane (g-1) and Joe (g-2).
@Suite("Connections of a user", .timeLimit(.minutes(10)))
struct ConnectionRoutesTests {
    private let fixture: AccountFixture

    init() throws {
        fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        fixture.google.setAccount("ya29.joe", .init(id: "g-2", email: "joe@work.example", name: "Joe"))
        fixture.codes.configure()
    }

    private func connect(
        _ account: String,
        as connection: String? = nil,
        refreshToken: String? = nil,
        fields: String = ""
    ) async throws -> ParsedResponse {
        let named = connection.map { #","connection":"\#($0)""# } ?? ""
        let refreshToken = refreshToken ?? "1//\(account)"
        return try await fixture.send(
            "POST",
            "/v1/connections/google",
            token: fixture.token(ofUser: "42"),
            json: #"{"access_token":"ya29.\#(account)","refresh_token":"\#(refreshToken)"\#(named)\#(fields)}"#
        )
    }

    private func get(_ path: String) async throws -> ParsedResponse {
        try await fixture.send("GET", path, token: fixture.token(ofUser: "42"))
    }

    private func delete(_ path: String) async throws -> ParsedResponse {
        try await fixture.send("DELETE", path, token: fixture.token(ofUser: "42"))
    }

    private func grants() async throws -> [Grant] { try await fixture.store.grants(ofUser: "42") }

    /// The connections as the profile shows them: id, address and state.
    private func profile() async throws -> [String] {
        let connections = try await get("/v1/user/me").data?["connections"]?.array ?? []
        return connections.map { connection in
            ["id", "google_email", "state"].map { connection[$0]?.string ?? "-" }.joined(separator: " ")
        }
    }

    private func newID(_ response: ParsedResponse) throws -> String {
        try #require(response.data?["connection"]?["id"]?.string)
    }

    // MARK: Adding

    @Test("the first one is the default one, and the next has an id of its own")
    func twoAccounts() async throws {
        let first = try await connect("jane", as: "new")
        #expect(first.status == 201 && first.data?["connection"]?["id"] == .string("default"))
        let second = try await connect("joe", as: "new")
        let id = try newID(second)
        #expect(id != "default" && ConnectionID(id) != nil)
        #expect(second.data?["account_switch"] == .bool(false))
        #expect(second.data?["connection"]?["google_email"] == .string("joe@work.example"))
        #expect(try await profile() == ["default jane@gmail.com active", "\(id) joe@work.example active"])

        let list = try await get("/v1/connections")
        #expect(list.data?["connections"] == (try await get("/v1/user/me")).data?["connections"])
        let one = try await get("/v1/connections/\(id)")
        #expect(one.data?["connection"] == second.data?["connection"])
        #expect(try await get("/v1/connections/other").statusAndCode == "404 CONNECTION_NOT_FOUND")
        #expect(try await get("/v1/connections/new").statusAndCode == "404 CONNECTION_NOT_FOUND")
        let grants = try await grants()
        let tokens = try grants.map { try fixture.vault.openRefreshToken(of: $0)?.reveal() }
        #expect(tokens == ["1//jane", "1//joe"])
    }

    @Test("a second try to add an account updates its connection, also ten at once")
    func repeated() async throws {
        _ = try await connect("jane")
        let responses = try await withThrowingTaskGroup(of: ParsedResponse.self) { group in
            for number in 0..<10 {
                group.addTask { try await connect("joe", as: "new", refreshToken: "1//joe\(number)") }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(responses.allSatisfy { $0.status == 201 })
        #expect(Set(try responses.map(newID)).count == 1)
        #expect(try await grants().count == 2)
        let again = try await connect("jane", as: "new", refreshToken: "1//jane-again")
        #expect(try newID(again) == "default")
    }

    @Test("an account that is known by its address alone is the same")
    func byAddress() async throws {
        try await fixture.importGrant(owner: Grant.Owner(email: "JANE@gmail.com"))
        #expect(try newID(try await connect("jane", as: "new")) == "default")
        #expect(try await grants().map(\.owner.googleUserID) == ["g-1"])
    }

    @Test("more than a user can have are refused, and one that the user has ended counts once it is connected again")
    func tooMany() async throws {
        let limited = try AccountFixture(connectionsPerUser: 2)
        for number in 1...4 {
            limited.google.setAccount("ya29.\(number)", .init(id: "g-\(number)", email: "\(number)@gmail.com"))
        }
        func add(_ number: Int, as connection: String = "new") async throws -> ParsedResponse {
            let tokens = #""access_token":"ya29.\#(number)","refresh_token":"1//\#(number)""#
            return try await limited.send(
                "POST",
                "/v1/connections/google",
                token: limited.token(ofUser: "42"),
                json: #"{\#(tokens),"connection":"\#(connection)"}"#
            )
        }
        func disconnect(_ connection: String) async throws {
            let path = "/v1/connections/\(connection)"
            #expect(try await limited.send("DELETE", path, token: limited.token(ofUser: "42")).status == 200)
        }
        _ = try await add(1)
        let second = try newID(try await add(2))
        #expect(try await add(3).statusAndCode == "409 TOO_MANY_CONNECTIONS")
        #expect(try await add(2).status == 201, "it exists")
        try await disconnect(second)
        let third = try newID(try await add(3))
        #expect(try await add(4).statusAndCode == "409 TOO_MANY_CONNECTIONS")
        #expect(try await add(2, as: second).statusAndCode == "409 TOO_MANY_CONNECTIONS")
        #expect(try await add(2).statusAndCode == "409 TOO_MANY_CONNECTIONS")
        try await disconnect(third)
        #expect(try newID(try await add(2, as: second)) == second)
        #expect(try await add(3, as: third).statusAndCode == "409 TOO_MANY_CONNECTIONS")
    }

    // MARK: This account or nothing

    @Test("a connection that is named stays with its account, and nothing of the other is stored or spent")
    func mismatch() async throws {
        _ = try await connect("jane")
        let id = try newID(try await connect("joe", as: "new"))
        let before = try await grants()
        fixture.google.setAccount("ya29.eve", .init(id: "g-3", email: "eve@gmail.com"))
        let refusals = [
            (connection: nil, refusal: "409 ACCOUNT_SWITCH", stored: "jane@gmail.com"),
            (connection: "default", refusal: "409 ACCOUNT_MISMATCH", stored: "jane@gmail.com"),
            (connection: id, refusal: "409 ACCOUNT_MISMATCH", stored: "joe@work.example"),
        ]
        for (connection, refusal, stored) in refusals {
            let response = try await connect("eve", as: connection, fields: #","on_switch":"refuse""#)
            #expect(response.statusAndCode == refusal)
            #expect(response["error"]?["expected"] == .string(stored))
            #expect(response["error"]?["found"] == .string("eve@gmail.com"))
        }
        fixture.codes.grant("4/0A")
        let byCode = try await fixture.send(
            "POST",
            "/v1/connections/google",
            token: fixture.token(ofUser: "42"),
            json: #"{"access_token":"ya29.jane","server_auth_code":"4/0A","connection":"\#(id)"}"#
        )
        #expect(byCode.statusAndCode == "409 ACCOUNT_MISMATCH" && fixture.codes.exchanged.isEmpty)
        #expect(try await grants() == before)
        #expect(try await connect("joe", as: id, refreshToken: "1//joe-again").status == 201)
        #expect(try await connect("joe", as: "unknown").statusAndCode == "404 CONNECTION_NOT_FOUND")
    }

    @Test("a code connects the account that it is for, as a connection of its own")
    func byCode() async throws {
        _ = try await connect("jane")
        fixture.codes.grant("4/0A", ofAccount: .success("g-2"))
        let response = try await fixture.send(
            "POST",
            "/v1/connections/google",
            token: fixture.token(ofUser: "42"),
            json: #"{"access_token":"ya29.joe","server_auth_code":"4/0A","connection":"new"}"#
        )
        #expect(response.status == 201)
        let id = try newID(response)
        #expect(try await profile() == ["default jane@gmail.com active", "\(id) joe@work.example active"])
    }

    @Test("the default one can switch to an account that is another one, which ends without a revocation")
    func takesOver() async throws {
        _ = try await connect("jane")
        let id = try newID(try await connect("joe", as: "new"))
        let response = try await fixture.connect("ya29.joe", refreshToken: "1//joe-old-app")
        #expect(response.data?["account_switch"] == .bool(true))
        #expect(try await profile() == ["default joe@work.example active", "\(id) joe@work.example disconnected"])
        let grants = try await grants()
        #expect(grants.map(\.owner.googleUserID) == ["g-2", nil])
        #expect(grants[1].reason == .accountMoved && grants[1].revocationAskedAt == nil)
        #expect(fixture.google.revoked.isEmpty)
        // The account is default now, and Jane's can come back as the other one.
        #expect(try newID(try await connect("joe", as: "new")) == "default")
        let back = try await connect("joe", as: id)
        #expect(back.statusAndCode == "409 ACCOUNT_CONNECTED" && back["error"]?["connection"] == .string("default"))
    }

    @Test("one that had ended, or is deleted later, gives its account away too", arguments: [1, 2])
    func takesOverEnded(path: Int) async throws {
        _ = try await connect("jane")
        let id = try newID(try await connect("joe", as: "new"))
        if path == 1 { _ = try await delete("/v1/connections/\(id)") }
        _ = try await fixture.connect("ya29.joe", refreshToken: "1//joe-old-app")
        if path == 2 { #expect(try await delete("/v1/connections/\(id)").status == 200) }
        #expect(try await grants().map(\.reason) == [.none, .accountMoved])
        #expect(try await connect("joe", as: "default", refreshToken: "1//joe-2").status == 201)
        #expect(try await connect("joe", as: id).statusAndCode == "409 ACCOUNT_CONNECTED")
        #expect(try await profile() == ["default joe@work.example active", "\(id) joe@work.example disconnected"])
    }

    @Test("a refusal to switch also leaves the account's other connection alone")
    func refusedTakeOver() async throws {
        let work = try #require(ConnectionID("work"))
        let id = GrantID.random(from: fixture.random)
        let owner = Grant.Owner(googleUserID: "g-2", email: "joe@work.example")
        var incoming = IncomingTokens(clientID: FakeGoogle.clientID, owner: owner)
        incoming.refreshToken = try fixture.vault.seal(refreshToken: Secret("1//imported"), for: id)
        let grant = Grant.connected(
            id: id,
            userID: "42",
            connection: work,
            incoming: incoming,
            dueAt: nil,
            at: fixture.time.now
        ).grant
        try await fixture.store.transact { try $0.insert(grant) }
        let response = try await connect("joe", fields: #","on_switch":"refuse""#)
        #expect(response.statusAndCode == "409 ACCOUNT_CONNECTED")
        #expect(response["error"]?["connection"] == .string("work"))
        #expect(try await grants() == [grant])
    }

    @Test("a code is spent only after Google was asked about unknown accounts, which is not repeated then")
    func unknownOwnerAndCode() async throws {
        try await fixture.importGrant()
        fixture.google.setLookups(
            "fresh-1",
            userInfo: .account(.init(id: "g-1")),
            tokenInfo: .account(.init(id: "g-1"))
        )
        fixture.codes.grant("4/0A", ofAccount: .success("g-2"))
        let response = try await fixture.send(
            "POST",
            "/v1/connections/google",
            token: fixture.token(ofUser: "42"),
            json: #"{"access_token":"ya29.joe","server_auth_code":"4/0A","connection":"new"}"#
        )
        #expect(response.status == 201)
        #expect(fixture.google.refreshed.count == 1)
        #expect(try await grants().count == 2 && fixture.codes.revoked.isEmpty)
    }

    @Test("an account that only Google knows is found before one more connection is made")
    func unknownOwner() async throws {
        try await fixture.importGrant()
        #expect(try newID(try await connect("jane", as: "new")) == "default")
        #expect(try await grants().map(\.owner.googleUserID) == ["g-1"])
    }

    @Test(
        "what is no connection is refused with the field",
        arguments: [
            (#""connection":"a b""#, "connection"), (#""connection":7"#, "connection"),
            (#""connection":"é""#, "connection"), (#""on_switch":"maybe""#, "on_switch"),
        ]
    )
    func badFields(field: String, named: String) async throws {
        let response = try await connect("jane", fields: ",\(field)")
        #expect(response.statusAndCode == "400 INVALID_JSON")
        #expect(response["error"]?["message"]?.string?.hasPrefix(named) == true)
        #expect(try await grants().isEmpty)
    }

    // MARK: Disconnecting

    @Test("one is disconnected alone, and revoked at Google")
    func disconnectOne() async throws {
        _ = try await connect("jane")
        let id = try newID(try await connect("joe", as: "new"))
        #expect(try await delete("/v1/connections/\(id)").status == 200)
        #expect(try await delete("/v1/connections/\(id)").status == 200, "a repetition")
        #expect(try await profile() == ["default jane@gmail.com active", "\(id) joe@work.example disconnected"])
        let ended = try #require(try await grants().last)
        #expect(try await fixture.engine.revokeNow(ended.id))
        #expect(fixture.google.revoked == ["1//joe"])
        #expect(try await delete("/v1/connections/unknown").statusAndCode == "404 CONNECTION_NOT_FOUND")

        // The seed's route leaves the others.
        _ = try await connect("joe", as: id, refreshToken: "1//joe-again")
        _ = try await delete("/v1/auth/gmail-tokens")
        #expect(try await profile() == ["default jane@gmail.com disconnected", "\(id) joe@work.example active"])
    }

    @Test("all are disconnected and revoked when the user is deleted")
    func deleteUser() async throws {
        _ = try await connect("jane")
        _ = try await connect("joe", as: "new")
        #expect(try await delete("/v1/user/me").status == 200)
        let grants = try await grants()
        #expect(grants.allSatisfy { $0.reason == .userDeleted && $0.revocationAskedAt != nil })
        for grant in grants { #expect(try await fixture.engine.revokeNow(grant.id)) }
        #expect(Set(fixture.google.revoked) == ["1//jane", "1//joe"])
    }

    @Test("the seed's routes know the default one alone, and their responses stay the same")
    func seedsRoutes() async throws {
        let alone = try AccountFixture()
        alone.google.setAccount("ya29.jane")
        _ = try await connect("jane")
        _ = try await connect("joe", as: "new")
        for repetition in 1...2 {
            let here = try await fixture.connect("ya29.jane", refreshToken: "1//\(repetition)")
            if repetition == 1 { _ = try await alone.connect("ya29.jane", refreshToken: "1//0") }
            let there = try await alone.connect("ya29.jane", refreshToken: "1//\(repetition)")
            #expect(here.data == there.data)
        }
        let profiles = try await [
            get("/v1/user/me"), alone.send("GET", "/v1/user/me", token: alone.token(ofUser: "42")),
        ]
        for field in ["name", "email", "gmail_account_connected", "gmail_connection"] {
            #expect(profiles[0].data?[field] == profiles[1].data?[field], "\(field)")
        }
    }
}

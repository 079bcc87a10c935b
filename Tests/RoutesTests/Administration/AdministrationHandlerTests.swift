import Crypto
import Records
import Scheduler
import SchedulerTestSupport
import Storage
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import HTTPServer
@testable import Routes

@Suite("Administration by a service", .timeLimit(.minutes(10)))
struct AdministrationHandlerTests {
    private static let routes = [
        ("GET", "/v1/grants"), ("GET", "/v1/grants/u-1"), ("PUT", "/v1/grants/u-1"), ("DELETE", "/v1/grants/u-1"),
        ("POST", "/v1/grants/u-1/retry"), ("DELETE", "/v1/users/u-1"),
    ]
    private static let record = #"{"refresh_token": "1//new", "scope": "openid", "expires_in": 3600}"#

    private let fixture: VendingFixture

    init() throws {
        fixture = try VendingFixture()
    }

    private func send(
        _ method: String,
        _ path: String,
        _ query: [ServerRequest.Field] = [],
        body: String = "",
        credential: String? = VendingFixture.managerCredential
    ) async throws -> ParsedResponse {
        let request = ServerRequest(
            method: method,
            path: path,
            query: query,
            headers: credential.map { [("Authorization", "Bearer \($0)")] } ?? [],
            body: Array(body.utf8)
        )
        return ParsedResponse(try await VendingFixture.response(to: request, from: await fixture.routes()))
    }

    /// The service, operation and outcome of each line of the audit.
    private var audit: [String] {
        fixture.audit.lines(of: "manage").map { line in
            ["service", "operation", "outcome"].map { line[$0]?.string ?? "" }.joined(separator: " ")
        }
    }

    private func grant(_ user: String = "u-1") async throws -> Grant {
        try #require(try await fixture.store.grant(ofUser: user))
    }

    // MARK: Permission

    @Test("is refused without a known credential, and to services that may not manage grants", arguments: routes)
    func refused(method: String, path: String) async throws {
        try await fixture.add(user: "u-1")
        for credential in [nil, "wrong"] {
            let response = try await send(method, path, body: Self.record, credential: credential)
            #expect(response.error == "401 unauthorized")
        }
        #expect(audit == [])
        for credential in [VendingFixture.credential, VendingFixture.operatorCredential] {
            let response = try await send(method, path, body: Self.record, credential: credential)
            #expect(response.error == "403 forbidden")
            #expect(response["message"]?.string?.contains(#""manage": true"#) == true)
        }
        #expect(audit.count == 2 && audit.allSatisfy { $0.hasSuffix(" forbidden") })
        #expect(try await grant().generation == 1)
    }

    @Test(
        "treats users of others the same, whether they exist or not",
        arguments: routes.dropFirst()
    )
    func foreignUser(method: String, path: String) async throws {
        try await fixture.add(user: "u-1")
        func refusal(_ path: String) async throws -> ParsedResponse {
            try await send(method, path, body: Self.record, credential: VendingFixture.limitedManagerCredential)
        }
        let known = try await refusal(path)
        let unknown = try await refusal(path.replacing("u-1", with: "u-2"))
        #expect(known.error == "403 forbidden")
        #expect(known.text == unknown.text)
        #expect(fixture.audit.lines(of: "manage").allSatisfy { $0["grant"] == nil })
    }

    @Test(
        "refuses ids that no user can have, whoever asks",
        arguments: [String(repeating: "u", count: 1025), "a\u{7}", "a\u{fffd}", "ya29.a0AfB_byC-0123456789abcdef"]
    )
    func malformedUser(user: String) async throws {
        for credential in [VendingFixture.managerCredential, VendingFixture.limitedManagerCredential] {
            let response = try await send("GET", "/v1/grants/\(user)", credential: credential)
            #expect(response.error == "400 invalid_request")
            #expect(!response.text.contains("ya29"))
        }
    }

    @Test("without a services file says so", arguments: routes)
    func withoutServices(method: String, path: String) async throws {
        let routes = await fixture.routes(hasServices: false)
        let response = try await VendingFixture.response(to: ServerRequest(method: method, path: path), from: routes)
        #expect(ParsedResponse(response).error == "503 no_services")
    }

    @Test("changes and shows nothing that the audit does not have", arguments: routes)
    func withoutAudit(method: String, path: String) async throws {
        try await fixture.add(user: "u-1")
        fixture.audit.refuse()
        #expect(try await send(method, path, body: Self.record).error == "503 audit_unavailable")
        #expect(try await grant().generation == 1)
    }

    @Test("records each change before it is made, and its outcome", arguments: routes.dropFirst(2))
    func audited(method: String, path: String) async throws {
        let id = try await fixture.add(user: "u-1")
        let seen = Mutex<[String]?>(nil)
        fixture.store.beforeTransaction { [fixture] in
            let outcomes = fixture.audit.lines(of: "manage").compactMap { $0["outcome"]?.string }
            seen.withLock { $0 = $0 ?? outcomes }
        }
        #expect((200...201).contains(try await send(method, path, body: Self.record).status))
        #expect(seen.withLock { $0 } == ["allowed"])
        let lines = fixture.audit.lines(of: "manage")
        #expect(lines.compactMap { $0["outcome"]?.string } == ["allowed", "done"])
        #expect(lines.allSatisfy { $0["grant"]?.string == id.description && $0["service"]?.string == "admin" })
        #expect(!fixture.audit.texts.joined().contains("u-1"))
    }

    @Test("says so if the database fails, and changes nothing", arguments: routes.dropFirst(2))
    func storeFails(method: String, path: String) async throws {
        try await fixture.add(user: "u-1")
        fixture.store.failTransactions(1)
        #expect(try await send(method, path, body: Self.record).error == "503 store_unavailable")
        #expect(try await grant().generation == 1)
        #expect(audit.last?.hasSuffix("store_unavailable") == true)
    }

    // MARK: Reading

    @Test("lists grants page by page, without a token")
    func list() async throws {
        for number in 0..<5 {
            try await fixture.add(user: "u-\(number)", accessToken: "ya29.secret", refreshToken: "1//secret")
        }
        try await fixture.change(user: "u-4") { $0.disconnect(reason: .invalidGrant, at: fixture.time.now) }
        var users: [String] = []
        var query: [ServerRequest.Field] = [("limit", "2")]
        repeat {
            let page = try await send("GET", "/v1/grants", query)
            #expect(page.status == 200 && !page.text.contains("secret"))
            users += page["grants"]?.array?.compactMap { $0["user_id"]?.string } ?? []
            query = [("limit", "2")] + (page["next"]?.string.map { [("after", $0)] } ?? [])
        } while query.count > 1
        #expect(users.sorted() == (0..<5).map { "u-\($0)" })
        let ended = try await send("GET", "/v1/grants", [("state", "disconnected")])
        #expect(ended["grants"]?.array?.compactMap { $0["user_id"]?.string } == ["u-4"])
        #expect(ended["next"] == .null)
        for query in [("reason", "invalid_grant"), ("client", "other"), ("expired", "true")] {
            let found = try await send("GET", "/v1/grants", [query])["grants"]?.array?.count
            #expect(found == (query.0 == "reason" ? 1 : 0), "\(query)")
        }
    }

    @Test("lists only the service's users, and the pages show nothing about others")
    func limitedList() async throws {
        for user in ["u/1", "u/2", "u/3", "u/4"] { try await fixture.add(user: user) }
        func page(_ query: [ServerRequest.Field]) async throws -> ([String], String?) {
            let page = try await send(
                "GET",
                "/v1/grants",
                query,
                credential: VendingFixture.limitedManagerCredential
            )
            return (page["grants"]?.array?.compactMap { $0["user_id"]?.string } ?? [], page["next"]?.string)
        }
        #expect(try await page([]) == (["u/1", "u/3"], nil))
        #expect(try await page([("limit", "1")]) == (["u/1"], "1"))
        #expect(try await page([("limit", "1"), ("after", "1")]) == (["u/3"], "2"))
        // A user of the service without a grant.
        #expect(try await page([("limit", "1"), ("after", "2")]) == ([], nil))
        #expect(try await page([("after", "4")]) == ([], nil))
        #expect(try await page([("state", "suspended")]) == ([], nil))
    }

    @Test(
        "refuses queries that it does not understand",
        arguments: [
            ("limit", "0"), ("limit", "501"), ("limit", "ten"), ("limit", "+1"), ("limit", ""), ("state", "ended"),
            ("after", ""), ("after", "u-1"), ("reason", "A b"), ("expired", "1"), ("client", ""),
            ("client_id", "client"), ("State", "active"), ("", ""), ("ya29.secret", ""),
        ]
    )
    func invalidQuery(name: String, value: String) async throws {
        #expect(try await send("GET", "/v1/grants", [(name, value)]).error == "400 invalid_request")
        let twice: [ServerRequest.Field] = [("state", "active"), ("state", "active")]
        #expect(try await send("GET", "/v1/grants", twice).error == "400 invalid_request")
        #expect(audit.last == "admin list invalid_request")
    }

    @Test("changes and shows nothing if the query has an unknown name", arguments: routes)
    func unknownName(method: String, path: String) async throws {
        try await fixture.add(user: "u-1")
        let response = try await send(method, path, [("ya29.dry_run", "true")], body: Self.record)
        #expect(response.error == "400 invalid_request")
        #expect(!response.text.contains("ya29"))
        #expect(try await grant().generation == 1)
        #expect(audit.last?.hasSuffix(" invalid_request") == true)
    }

    @Test("shows one grant as the command does")
    func show() async throws {
        try await fixture.add(user: "u-1", accessToken: "ya29.secret", refreshToken: nil)
        let response = try await send("GET", "/v1/grants/u-1")
        let stored = try await grant()
        var line = JSONLine()
        let now = fixture.time.now
        stored.writeWithWarnings(to: &line, at: now)
        #expect(try await send("GET", "/v1/grants/u-1", [("connection", "default")]).text == line.text)
        line.objects("connections", [stored]) { $0.writeWithWarnings(to: &$1, at: now) }
        #expect(response.text == line.text)
        #expect(response["warnings"]?.array == [.string("no_refresh_token")])
        #expect(response.header("Cache-Control") == "no-store")
        #expect(try await send("GET", "/v1/grants/u-2").error == "404 not_found")
        #expect(
            audit == ["admin show allowed", "admin show allowed", "admin show allowed", "admin show not_found"]
        )
    }

    // MARK: Importing

    @Test("stores a new grant, and replaces a stored one")
    func put() async throws {
        let first = try await send("PUT", "/v1/grants/u-1", body: Self.record)
        #expect(first.status == 201 && first["result"]?.string == "added")
        #expect(first["user_id"]?.string == "u-1" && first["client_id"]?.string == "client")
        #expect(
            fixture.audit.lines(of: "manage").map { $0["grant"]?.string } == [nil, try await grant().id.description]
        )
        let second = try await send(
            "PUT",
            "/v1/grants/u-1",
            body: #"{"user_id": "u-1", "refresh_token": "1//newer", "client_id": "other"}"#
        )
        #expect(second.status == 200 && second["result"]?.string == "replaced")
        #expect(second["generation"]?.integer == 2 && second["client_id"]?.string == "other")
        #expect(try fixture.vault.openRefreshToken(of: try await grant())?.reveal() == "1//newer")
        #expect(!second.text.contains("1//"))
    }

    @Test(
        "refuses records that are no grant of the user",
        arguments: [
            "", "[]", "{", #"{"refresh_token": 1}"#, #"{"scope": "openid"}"#,
            #"{"user_id": "u-2", "refresh_token": "1//new"}"#, #"{"refresh_token": "1//new", "expires_at": "soon"}"#,
        ]
    )
    func invalidRecord(body: String) async throws {
        let response = try await send("PUT", "/v1/grants/u-1", body: body)
        #expect(response.error == "400 invalid_request")
        #expect(!response.text.contains("1//"))
        #expect(try await fixture.store.grant(ofUser: "u-1") == nil)
    }

    @Test("does not bring back what its user ended, unless with a newer refresh token")
    func keptEnded() async throws {
        _ = try await send("PUT", "/v1/grants/u-1", body: Self.record)
        _ = try await send("DELETE", "/v1/grants/u-1")
        #expect(try await send("PUT", "/v1/grants/u-1", body: Self.record).error == "409 ended")
        #expect(try await grant().state == .disconnected)
        let other = Self.record.replacing("1//new", with: "1//newer")
        #expect(try await send("PUT", "/v1/grants/u-1", body: other).status == 200)
        #expect(try await grant().state == .active)
    }

    @Test("keeps a grant whose refresh token was rotated since the same record came")
    func keptRotated() async throws {
        func rotate(to token: String) async throws {
            fixture.endpoint.rotate(to: token)
            _ = try await fixture.engine.freshToken(of: "u-1", minimumLife: .seconds(60))
            // The next call has to refresh again.
            fixture.time.advance(by: .seconds(3600))
        }
        func put(_ token: String) async throws -> String? {
            let response = try await send("PUT", "/v1/grants/u-1", body: #"{"refresh_token": "\#(token)"}"#)
            return response["result"]?.string ?? response.error
        }
        func stored() async throws -> String? { try fixture.vault.openRefreshToken(of: try await grant())?.reveal() }
        #expect(try await put("1//first") == "added")
        for token in ["1//rotated-1", "1//rotated-2"] {
            try await rotate(to: token)
            #expect(try await put("1//first") == "kept")
            #expect(try await stored() == token)
        }
        #expect(try await put("1//second") == "replaced")
        try await rotate(to: "1//rotated-3")
        for token in ["1//first", "1//second"] { #expect(try await put(token) == "kept") }
        #expect(try await stored() == "1//rotated-3")
        _ = try await send("DELETE", "/v1/grants/u-1")
        for token in ["1//first", "1//second", "1//rotated-3"] { #expect(try await put(token) == "409 ended") }
    }

    @Test("does not bring a forgotten grant back with its old refresh token")
    func keptForgotten() async throws {
        _ = try await send("PUT", "/v1/grants/u-1", body: Self.record)
        let now = fixture.time.now
        try await fixture.change(user: "u-1") { $0.disconnect(reason: .invalidGrant, at: now) }
        try await fixture.store.forgetGrants(endedBefore: now + .seconds(1), at: now)
        #expect(try await grant().reason == .forgotten)
        #expect(try await send("PUT", "/v1/grants/u-1", body: Self.record).error == "409 ended")
        #expect(try await grant().refreshToken == nil)
        let other = Self.record.replacing("1//new", with: "1//newer")
        #expect(try await send("PUT", "/v1/grants/u-1", body: other).status == 200)
    }

    @Test(
        "takes the account that a record claims only from a service for all users",
        arguments: [
            (VendingFixture.managerCredential, "not_requested"), (VendingFixture.limitedManagerCredential, "pending"),
        ]
    )
    func claimedAccount(credential: String, revocation: String) async throws {
        func put(_ user: String, _ credential: String) async throws -> Int {
            let body = #"{"refresh_token": "1//\#(user)", "google_user_id": "g-1", "google_email": "a@b.c"}"#
            return try await send("PUT", "/v1/grants/\(user)", body: body, credential: credential).status
        }
        #expect(try await put("u-2", VendingFixture.managerCredential) == 201)
        #expect(try await put("v-5", credential) == 201)
        let claimed = Grant.Owner(googleUserID: "g-1", email: "a@b.c")
        let isTaken = credential == VendingFixture.managerCredential
        #expect(try await grant("v-5").owner == (isTaken ? claimed : Grant.Owner()))
        // Google would not hear of the end of another user's grant if it seemed to be shared.
        #expect(try await send("DELETE", "/v1/grants/u-2")["revocation"]?.string == revocation)
    }

    @Test("takes no labels that are null for a change of labels")
    func nullLabels() async throws {
        let labelled = #"{"refresh_token":"1//new","labels":{"tenant":"acme"}}"#
        #expect(try await send("PUT", "/v1/grants/u-1", body: labelled).status == 201)
        let before = try await grant()
        let response = try await send("PUT", "/v1/grants/u-1", body: #"{"labels":null}"#)
        #expect(response.error == "400 invalid_request")
        #expect(try await grant() == before)
    }

    // MARK: Ending

    @Test("tries and ends the connection that is named, and says which one it was")
    func namedConnection() async throws {
        let work = try #require(ConnectionID("work"))
        try await fixture.add(user: "u-1")
        try await fixture.add(user: "u-1", connection: work)
        let query: [ServerRequest.Field] = [("connection", "work")]
        #expect(try await send("POST", "/v1/grants/u-1/retry", query)["connection"] == .string("work"))
        #expect(try await send("DELETE", "/v1/grants/u-1", query)["connection"] == .string("work"))
        #expect(try await fixture.store.grants(ofUser: "u-1").map(\.reason) == [.none, .userRequest])
    }

    @Test("disconnects a grant, which the engine revokes at Google")
    func disconnect() async throws {
        try await fixture.add(user: "u-1")
        let response = try await send("DELETE", "/v1/grants/u-1")
        #expect(response.status == 200)
        #expect(response.text == #"{"user_id":"u-1","revocation":"pending","connection":"default"}"#)
        #expect(try await grant().reason == .userRequest)
        #expect(fixture.audit.lines(of: "state").map { $0["to"]?.string } == ["disconnected"])
        _ = try await fixture.engine.revokeNow(grantOf: "u-1")
        #expect(try await grant().refreshToken == nil)
        let again = try await send("DELETE", "/v1/grants/u-1")
        #expect(again["revocation"]?.string == "done")
        #expect(try await send("DELETE", "/v1/grants/u-2").error == "404 not_found")
    }

    @Test("does not revoke what would end another user's grant")
    func sharedAccount() async throws {
        for user in ["u-1", "u-2"] {
            let body = #"{"refresh_token": "1//\#(user)", "google_user_id": "g-1"}"#
            #expect(try await send("PUT", "/v1/grants/\(user)", body: body).status == 201)
        }
        #expect(try await send("DELETE", "/v1/grants/u-1")["revocation"]?.string == "not_requested")
        #expect(try await grant("u-2").state == .active)
    }

    @Test("deletes a user with the grant, once")
    func deleteUser() async throws {
        try await fixture.add(user: "u-1")
        let response = try await send("DELETE", "/v1/users/u-1")
        #expect(response.text == #"{"user_id":"u-1","ended_sessions":0,"revocation":"pending"}"#)
        #expect(try await fixture.store.user("u-1")?.isDeleted == true)
        #expect(try await send("DELETE", "/v1/users/u-1").error == "404 not_found")
        #expect(try await send("PUT", "/v1/grants/u-1", body: Self.record).error == "409 user_deleted")
        #expect(try await send("DELETE", "/v1/grants/u-1").error == "404 not_found")
        let user = User(id: "u-2", createdAt: fixture.time.now)
        try await fixture.store.transact { try $0.insert(user) }
        let without = try await send("DELETE", "/v1/users/u-2")
        #expect(without.text == #"{"user_id":"u-2","ended_sessions":0,"revocation":null}"#)
    }

    @Test("deletes a user with all connections, and logs the end of each")
    func deleteUserWithConnections() async throws {
        let user = User(id: "u-1", createdAt: fixture.time.now)
        try await fixture.store.transact { try $0.insert(user) }
        for connection in ["work", "school"] {
            let body = #"{"refresh_token":"1//\#(connection)","connection":"\#(connection)"}"#
            let query: [ServerRequest.Field] = [("connection", connection)]
            #expect(try await send("PUT", "/v1/grants/u-1", query, body: body).status == 201)
        }
        #expect(try await send("DELETE", "/v1/users/u-1").status == 200)
        #expect(fixture.audit.lines(of: "state").map { $0["to"]?.string } == ["disconnected", "disconnected"])
    }

    // MARK: Retrying

    @Test("makes a grant due now")
    func retry() async throws {
        try await fixture.add(user: "u-1", refreshToken: "1//refresh")
        let later = fixture.time.now + .seconds(600)
        try await fixture.change(user: "u-1") { grant in
            grant.reschedule(to: later)
            return []
        }
        let response = try await send("POST", "/v1/grants/u-1/retry")
        #expect(response.text == #"{"user_id":"u-1","result":"due","connection":"default"}"#)
        #expect(try await grant().dueAt == fixture.time.now)
        #expect(try await send("POST", "/v1/grants/u-2/retry").error == "404 not_found")
    }

    @Test("says why a grant is left as it is")
    func notRetried() async throws {
        let now = fixture.time.now
        try await fixture.add(user: "u-1", refreshToken: nil)
        #expect(try await send("POST", "/v1/grants/u-1/retry").error == "409 no_refresh_token")
        try await fixture.add(user: "u-2")
        try await fixture.change(user: "u-2") { $0.disconnect(reason: .invalidGrant, at: now) }
        let ended = try await send("POST", "/v1/grants/u-2/retry")
        #expect(ended.error == "409 ended" && ended["reason"]?.string == "invalid_grant")
        #expect(ended["since"]?.string == now.iso8601Seconds)
        try await fixture.change(user: "u-2") { $0.recall(confirmAt: now + .seconds(300), at: now) }
        let waiting = try await send("POST", "/v1/grants/u-2/retry")
        #expect(waiting.error == "409 awaiting_confirmation")
        #expect(try await grant("u-2").dueAt == now + .seconds(300))
    }
}

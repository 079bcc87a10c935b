import Base
import Crypto
import Foundation
import GoogleOAuth
import Scheduler
import Status
import Telemetry
import TestSupport
import Testing

@testable import Crypto
@testable import HTTPServer
@testable import Routes
@testable import Storage

@Suite("Looking up a user", .timeLimit(.minutes(10)))
struct UserLookupTests {
    private let fixture: VendingFixture

    init() throws {
        fixture = try VendingFixture()
    }

    private static let jane = "Bearer \(VendingFixture.operatorCredential)"
    private static let joe = "Bearer \(VendingFixture.limitedOperatorCredential)"
    private static let boss = "Bearer \(VendingFixture.managingOperatorCredential)"
    private static let user: [ServerRequest.Field] = [("user", "u/1")]

    private static func basic(_ name: String, _ password: String) -> String {
        "Basic \(Data(Array("\(name):\(password)".utf8)).base64EncodedString())"
    }

    private func request(_ query: [ServerRequest.Field], _ authorization: [String]) -> ServerRequest {
        ServerRequest(
            method: "GET",
            path: "/users",
            query: query,
            headers: authorization.map { (name: "Authorization", value: $0) }
        )
    }

    private func send(
        _ query: [ServerRequest.Field],
        _ authorization: String...
    ) async throws -> ServerResponse {
        try await VendingFixture.response(to: request(query, authorization), from: await fixture.routes())
    }

    private func lookup(_ query: [ServerRequest.Field]) async throws -> StatusPage.Lookup {
        let database = DatabaseReadiness(store: fixture.store, time: fixture.time)
        await database.check()
        return try await fixture.lookup(database).user(request(query, [Self.jane]))
    }

    private func post(
        _ form: String,
        _ authorization: String = jane,
        headers: [(String, String)] = []
    ) async throws -> ParsedResponse {
        let request = ServerRequest(
            method: "POST",
            path: "/users",
            headers: [("Authorization", authorization)] + headers,
            body: Array(form.utf8)
        )
        return ParsedResponse(try await VendingFixture.response(to: request, from: await fixture.routes()))
    }

    private func list(
        _ query: [ServerRequest.Field] = [],
        _ authorization: String = jane
    ) async throws -> ParsedResponse {
        let headers: [ServerRequest.Field] = [("Authorization", authorization)]
        let request = ServerRequest(method: "GET", path: "/grants", query: query, headers: headers)
        return ParsedResponse(try await VendingFixture.response(to: request, from: await fixture.routes()))
    }

    private func setEmail(_ email: String, of users: String...) async throws {
        try await fixture.store.transact { transaction in
            for id in users {
                guard var user = try transaction.user(id) else { throw VendingError.unknownGrant }
                user.email = email
                try transaction.update(user)
            }
        }
    }

    /// The service, outcome and grant of each line of the audit.
    private var audit: [String] {
        fixture.audit.lines(of: "lookup").map { line in
            [line["service"]?.string, line["outcome"]?.string, line["grant"]?.string].compactMap(\.self)
                .joined(separator: " ")
        }
    }

    @Test("shows the grant and its history, and records it")
    func found() async throws {
        let id = try await fixture.add(accessToken: nil)
        fixture.endpoint.setFailure(.endpointFault(code: "http_503"))
        _ = await fixture.send()
        guard case .found(let grant, let history, let buttons) = try await lookup(Self.user) else {
            Issue.record("the user was not found")
            return
        }
        #expect(grant.id == id && grant.state == .retrying && buttons.isEmpty)
        #expect(history.first?.to == .retrying)
        #expect(audit == ["jane found \(id)"])
    }

    @Test("says that a user is unknown, and records it")
    func unknown() async throws {
        guard case .unknownUser(let user) = try await lookup([("user", "Zoë ☃")]) else {
            Issue.record("a user was found")
            return
        }
        #expect(user == "Zoë ☃")
        #expect(audit == ["jane not_found"])
    }

    @Test(
        "is refused to pages of other sites, which get no line in the audit, unless the operator follows their link",
        arguments: [
            FetchMetadata(site: "cross-site", mode: "no-cors", destination: "image", isRefused: true),
            FetchMetadata(site: "cross-site", mode: "cors", destination: "empty", isRefused: true),
            FetchMetadata(site: "cross-site", mode: "navigate", destination: "iframe", isRefused: true),
            FetchMetadata(site: "cross-site", mode: "navigate", destination: "document", isRefused: false),
            FetchMetadata(site: "same-origin", mode: "cors", destination: "empty", isRefused: false),
            FetchMetadata(site: "none", mode: "navigate", destination: "document", isRefused: false),
        ]
    )
    func otherSites(metadata: FetchMetadata) async throws {
        try await fixture.add(user: "u/1")
        let routes = await fixture.routes()
        let headers = [("Authorization", Self.jane)] + metadata.headers
        let requests = [
            ServerRequest(method: "GET", path: "/users", query: Self.user, headers: headers),
            ServerRequest(method: "GET", path: "/grants", headers: headers),
            ServerRequest(method: "POST", path: "/users", headers: headers, body: Array("user=u%2F1".utf8)),
        ]
        for request in requests {
            let response = try await VendingFixture.response(to: request, from: routes)
            #expect(response.status == (metadata.isRefused ? 403 : 200), "\(request.method) \(request.path)")
        }
        #expect(audit.count == (metadata.isRefused ? 0 : requests.count))
    }

    struct FetchMetadata: Sendable {
        let site: String
        let mode: String
        let destination: String
        let isRefused: Bool

        var headers: [ServerRequest.Field] {
            [("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", mode), ("Sec-Fetch-Dest", destination)]
        }
    }

    @Test("finds a user by e-mail address, handle and grant too, without an address that names the user")
    func otherNames() async throws {
        let id = try await fixture.add(user: "u/1")
        try await setEmail("Ada@example.com", of: "u/1")
        let mailer = try #require(fixture.services.service(presenting: VendingFixture.credential))
        let handle = try mailer.handle(of: "u/1")
        for form in ["user=u%2F1", "user=ada%40EXAMPLE.com", "user=\(handle)"] {
            let page = try await post(form)
            #expect(page.status == 200 && page.text.contains(#"<bdi class="code">u/1</bdi>"#), "\(form)")
            #expect(!page.text.contains(#"name="change""#), "jane may not manage grants")
        }
        #expect(try await send([("grant", "\(id)")], Self.jane).status == 200)
        #expect(try await send([("grant", "0000000000000001")], Self.joe).status == 403)
        #expect(try await post("user=ada%40example.com", Self.joe).status == 200)
        #expect(audit == Array(repeating: "jane found \(id)", count: 4) + ["joe forbidden", "joe found \(id)"])
    }

    @Test("shows the connection that a handle names, and lists all of a user whose id is given")
    func connections() async throws {
        let work = try #require(ConnectionID("work"))
        let first = try await fixture.add(user: "u/1")
        let second = try await fixture.add(user: "u/1", connection: work)
        let mailer = try #require(fixture.services.service(presenting: VendingFixture.credential))
        for (named, id) in [(ConnectionID.default, first), (work, second)] {
            let handle = try mailer.handle(of: "u/1", connection: named)
            guard case .found(let grant, _, _) = try await lookup([("user", handle)]) else {
                Issue.record("\(named) was not found")
                continue
            }
            #expect(grant.id == id && grant.connection == named)
        }
        let missing = try mailer.handle(of: "u/1", connection: ConnectionID("other"))
        guard case .unknownUser = try await lookup([("user", missing)]) else {
            Issue.record("another connection was found")
            return
        }
        for text in ["u/1", try mailer.handle(of: "u/1")] {
            guard case .list(let grants, _, _, _) = try await lookup([("user", text)]) else {
                Issue.record("not all connections were listed")
                continue
            }
            #expect(grants.map(\.id) == [first, second])
        }
        let outcomes = ["found \(first)", "found \(second)", "not_found", "listed", "listed"]
        #expect(audit == outcomes.map { "jane \($0)" })
    }

    @Test("shows an operator with some connections of the users no other one, by whatever name")
    func limitedConnections() async throws {
        let work = try #require(ConnectionID("work"))
        let first = try await fixture.add(user: "u/1")
        let second = try await fixture.add(user: "u/1", connection: work)
        try await setEmail("ada@example.com", of: "u/1")
        try fixture.limitConnections(ofEntriesWith: #""users": ["*"], "operator": true"#)
        let mailer = try #require(fixture.services.service(presenting: VendingFixture.credential))
        let names = [("user", "u/1"), ("user", "ada@example.com"), ("grant", "\(first)")]
        for name in names + [("user", try mailer.handle(of: "u/1"))] {
            guard case .found(let grant, _, _) = try await lookup([name]) else {
                Issue.record("\(name) did not show the one connection")
                continue
            }
            #expect(grant.id == first)
        }
        #expect(try await send([("grant", "\(second)")], Self.jane).status == 403)
        guard case .unknownUser = try await lookup([("user", try mailer.handle(of: "u/1", connection: work))]) else {
            Issue.record("the other connection was shown")
            return
        }
        let page = try await list()
        #expect(page.text.contains("\(first)") && !page.text.contains("\(second)"))
    }

    @Test("lists the operator's users of an e-mail address that several have")
    func sharedAddress() async throws {
        for user in ["u/1", "u/2", "u/3"] { try await fixture.add(user: user) }
        try await setEmail("ada@example.com", of: "u/1", "u/2")
        let page = try await post("user=ada%40example.com")
        #expect(page.text.contains(">u/1<") && page.text.contains(">u/2<") && !page.text.contains(">u/3<"))
        #expect(page.text.ranges(of: "ada@example.com").count == 1, "only the field has what was looked up")
        let limited = try await post("user=ada%40example.com", Self.joe)
        #expect(limited.text.contains(">u/1<") && !limited.text.contains("u/2"))
    }

    @Test("lists the grants that fit, a page at a time, without addresses and tokens")
    func pages() async throws {
        for number in 0..<52 { try await fixture.add(user: "u-\(number)", accessToken: "ya29.secret") }
        try await setEmail("ada@example.com", of: "u-1")
        fixture.time.advance(by: .milliseconds(1))
        try await fixture.change(user: "u-1") { $0.disconnect(reason: .invalidGrant, at: fixture.time.now) }
        func rows(_ page: ParsedResponse) -> Int { page.text.ranges(of: "users?grant=").count }
        let first = try await list([("state", ""), ("reason", ""), ("client", "")])
        #expect(first.status == 200 && rows(first) == 50)
        #expect(!first.text.contains("ada@example.com") && !first.text.contains("secret"))
        #expect(first.text.contains("52 grants, 50 of them here, the longest in their state first."))
        let next = try #require(first.text.firstMatch(of: /name="after" value="([0-9]+-[0-9a-f]{16})"/)?.1)
        let second = try await list([("after", String(next))])
        #expect(rows(second) == 2 && !second.text.contains(#"name="after""#))
        let last = try #require(second.text.firstRange(of: ">u-1<"), "it came into its state last")
        #expect(second.text[last.upperBound...].firstRange(of: "users?grant=") == nil)
        for query in [("state", "disconnected"), ("reason", "invalid_grant")] {
            let page = try await list([query])
            #expect(rows(page) == 1 && page.text.contains(">u-1<"), "\(query)")
        }
        #expect(rows(try await list([("client", "other")])) == 0)
        fixture.time.advance(by: .seconds(3600))
        #expect(rows(try await list([("expired", "true"), ("state", "active")])) == 50)
        #expect(Set(audit) == ["jane listed"])
    }

    @Test("has an address without the user's name, which leads other operators to the same answer, with their line")
    func address() async throws {
        let first = try await fixture.add(user: "u/1")
        func link(_ page: ParsedResponse) -> String? {
            page.text.firstMatch(of: /id="address" href="users\?([^"]*)"/).map { String($0.1) }
        }
        #expect(link(try await post("user=u%2F1")) == "grant=\(first)")
        let second = try await fixture.add(user: "u/1", connection: try #require(ConnectionID("work")))
        let other = try await fixture.add(user: "u/2")
        let both = try await post("user=u%2F1")
        #expect(link(both) == "connections-of=\(first)")
        let query = [("connections-of", "\(first)")]
        let opened = ParsedResponse(try await send(query, Self.boss))
        #expect(opened.text.contains("\(first)") && opened.text.contains("\(second)"))
        #expect(opened.text.contains(#"value="u/1""#) && link(opened) == link(both))
        #expect(try await send([("connections-of", "\(other)")], Self.joe).status == 403)
        #expect(try await send(query).status == 401)
        #expect(ParsedResponse(try await send([("connections-of", "0")], Self.jane)).text.contains("No grant of"))
        #expect(opened.header("Referrer-Policy") == "no-referrer")
        #expect(
            audit == ["jane found \(first)", "jane listed", "boss listed", "joe forbidden", "jane not_found"]
        )
    }

    @Test("lists more grants than it sorts in the order of their ids")
    func unsorted() async throws {
        let users = (0..<201).map { "\"u-\($0)\"" }.joined(separator: ", ")
        try fixture.limitUsers(ofEntriesWith: #""users": ["*"], "operator": true"#, to: users)
        try await fixture.add(user: "u-1")
        let page = try await list([("state", "active")])
        #expect(page.text.contains(">u-1<") && page.text.contains("In the order of their ids"))
    }

    @Test("lists only the grants of the operator's users, and nothing for other services")
    func limitedPages() async throws {
        for user in ["u/1", "u/2"] { try await fixture.add(user: user) }
        let page = try await list([], Self.joe)
        #expect(page.text.contains(">u/1<") && !page.text.contains("u/2"))
        #expect(try await list([], "Bearer wrong").status == 401)
        #expect(try await list([], "Bearer \(VendingFixture.managerCredential)").status == 403)
        for query in [("state", "ended"), ("states", "active")] { #expect(try await list([query]).status == 400) }
        #expect(audit == ["joe listed", "admin forbidden", "jane invalid_request", "jane invalid_request"])
    }

    /// The sealed texts of the buttons on a user's page: retry and disconnect.
    private func buttons(_ authorization: String = boss) async throws -> [String] {
        let page = String(decoding: try await send(Self.user, authorization).body, as: UTF8.self)
        return page.matches(of: /name="change" value="([^"]+)"/).map { String($0.1) }
    }

    @Test("a button changes the grant that its page showed, and no later one")
    func change() async throws {
        let id = try await fixture.add()
        let buttons = try await buttons()
        #expect(buttons.count == 2)
        for button in buttons {
            let response = try await post("change=\(button)", Self.boss)
            #expect(response.status == 303 && response.header("Location") == "users?grant=\(id)")
        }
        let grant = try #require(try await fixture.store.grant(id))
        #expect(grant.state == .disconnected && grant.reason == .userRequest)
        for button in buttons { #expect(try await post("change=\(button)", Self.boss).status == 409) }
        #expect(try await self.buttons().isEmpty)
        let changes = fixture.audit.lines(of: "manage").map { line in
            ["service", "operation", "outcome"].map { line[$0]?.string ?? "" }.joined(separator: " ")
        }
        let expected = ["done", "changed"].flatMap { outcome in
            ["boss retry allowed", "boss retry \(outcome)", "boss disconnect allowed", "boss disconnect \(outcome)"]
        }
        #expect(changes == expected)
    }

    @Test("a button leaves a connection alone that the user makes while it is pressed", arguments: [true, false])
    func reconnected(bringsToken: Bool) async throws {
        let id = try await fixture.add()
        let token = try fixture.vault.seal(refreshToken: Secret("1//new"), for: id)
        if !bringsToken {
            try await fixture.change { $0.requireSignIn(reason: .invalidGrant, at: fixture.time.now) }
        }
        for index in try await buttons().indices {
            let button = try await buttons()[index]
            fixture.time.advance(by: .milliseconds(1))
            fixture.store.beforeTransaction { [fixture] in
                fixture.store.beforeTransaction {}
                await #expect(throws: Never.self) {
                    try await fixture.change { grant in
                        grant.reconnect(
                            IncomingTokens(clientID: "client", refreshToken: bringsToken ? token : nil),
                            replacesRefreshToken: bringsToken,
                            discardsStored: false,
                            dueAt: fixture.time.now + .seconds(3600),
                            at: fixture.time.now
                        )
                    }
                }
            }
            #expect(try await post("change=\(button)", Self.boss).status == 409)
            let grant = try #require(try await fixture.store.grant(id))
            #expect(grant.state == .active && grant.dueAt == fixture.time.now + .seconds(3600))
        }
    }

    @Test("a form without the sealed text of the operator's own page changes nothing")
    func forgery() async throws {
        let id = try await fixture.add()
        let button = try #require(try await buttons().last)
        let boss = try #require(fixture.services.service(presenting: VendingFixture.managingOperatorCredential))
        let handle = try boss.handle(of: "disconnect \(id) 1")
        let forms = [
            "change=", "change=disconnect", "change=\(button.dropLast())", "change=\(button)&change=\(button)",
        ]
        // Whoever can read the services file has the hash of the credential.
        let grant = try #require(try await fixture.store.grant(id))
        let hashKey = TextSealingKey(from: Secret(utf8: boss.credentialHash), owner: "changes by boss")
        let forged = Base64URL.encode(try hashKey.seal("disconnect \(grant.version)"))
        for form in forms + ["change=\(handle.dropFirst(4))", "change=\(forged)"] {
            #expect(try await post(form, Self.boss).status == 403, "\(form)")
        }
        for other in [Self.jane, Self.joe, "Bearer \(VendingFixture.managerCredential)"] {
            #expect(try await post("change=\(button)", other).status == 403)
        }
        #expect(try await post("change=\(button)", "Bearer wrong").status == 401)
        for form in ["change=\(button)&user=u%2F1", "change=\(button)&force=1"] {
            #expect(try await post(form, Self.boss).status == 400, "\(form)")
        }
        let foreign = [("Sec-Fetch-Site", "cross-site")]
        #expect(try await post("change=\(button)", Self.boss, headers: foreign).status == 403)
        #expect(try await fixture.store.grant(id)?.state == .active)
        #expect(fixture.audit.lines(of: "manage").isEmpty)
    }

    @Test(
        "accepts a credential alone or with the service's name",
        arguments: [jane, joe, basic("jane", VendingFixture.operatorCredential)]
    )
    func accepted(authorization: String) async throws {
        let id = try await fixture.add()
        let response = try await send(Self.user, authorization)
        #expect(response.status == 200)
        #expect(response.headers.contains { $0.name == "Content-Security-Policy" })
        #expect(audit.map { $0.hasSuffix("found \(id)") } == [true])
    }

    @Test(
        "asks for a credential without one, with a wrong one and with two",
        arguments: [
            [], ["Bearer wrong"], [basic("jane", "wrong")], [basic("joe", VendingFixture.operatorCredential)],
            [basic("", VendingFixture.operatorCredential)], [VendingFixture.operatorCredential], [jane, jane],
            ["Basic \(VendingFixture.operatorCredential)"], ["Bearer"],
        ]
    )
    func unauthorized(authorization: [String]) async throws {
        try await fixture.add()
        let routes = await fixture.routes()
        for query in [Self.user, []] {
            let response = ParsedResponse(
                try await VendingFixture.response(to: request(query, authorization), from: routes)
            )
            #expect(response.status == 401)
            #expect(response.header("WWW-Authenticate") == #"Basic realm="refresh-worker", charset="UTF-8""#)
            #expect(response.header("Content-Type") == "text/plain; charset=utf-8")
            #expect(response.header("Cache-Control") == "no-store")
        }
        #expect(audit.isEmpty)
    }

    @Test(
        "is refused to a service that is not an operator, and for users whom an operator may not see, known or not",
        arguments: [
            ("Bearer \(VendingFixture.credential)", "u/1", "full"),
            ("Bearer \(VendingFixture.limitedCredential)", "u/1", "limited"), (joe, "u/2", "joe"),
            (joe, "unknown", "joe"),
        ]
    )
    func forbidden(authorization: String, user: String, service: String) async throws {
        try await fixture.add()
        try await fixture.add(user: "u/2")
        let response = try await send([("user", user)], authorization)
        #expect(response.status == 403)
        #expect(!String(decoding: response.body, as: UTF8.self).contains(user))
        #expect(audit == ["\(service) forbidden"])
    }

    @Test(
        "is refused with a sentence for a query that does not name one user",
        arguments: [
            [], [("user", ""), ("grant", "0123456789abcdef")], [("user", "")], [("user", "a"), ("user", "a")],
            [("users", "a")], [("user", "u/1"), ("users", "u/1")], [("user", "u/1"), ("grant", "0123456789abcdef")],
            [("user", String(repeating: "a", count: 256))], [("user", "a\u{0}")], [("user", "a\n")],
            [("user", "\u{fffd}")],
        ] as [[ServerRequest.Field]]
    )
    func invalid(query: [ServerRequest.Field]) async throws {
        let response = ParsedResponse(try await send(query, Self.jane))
        #expect(response.status == 400)
        #expect(response.text.contains("user"))
        #expect(audit == ["jane invalid_request"])
    }

    @Test("is refused while the audit cannot be written")
    func withoutAudit() async throws {
        try await fixture.add()
        fixture.audit.refuse()
        let response = ParsedResponse(try await send(Self.user, Self.jane))
        #expect(response.status == 503)
        #expect(response.header("Retry-After") == "5")
    }

    @Test(
        "is refused while the database cannot be read, whether or not a check has noticed it",
        arguments: [true, false]
    )
    func withoutDatabase(isNoticed: Bool) async throws {
        try await fixture.add()
        if isNoticed { await fixture.store.close() }
        let routes = await fixture.routes()
        await fixture.store.close()
        let request = request(Self.user, [Self.jane])
        let response = ParsedResponse(try await VendingFixture.response(to: request, from: routes))
        #expect(response.status == 503)
        #expect(audit == ["jane store_unavailable"])
    }

    @Test("is not possible without a services file, which lists the operators")
    func withoutServices() async throws {
        let routes = await fixture.routes(hasServices: false)
        let request = request(Self.user, [Self.jane])
        let response = ParsedResponse(try await VendingFixture.response(to: request, from: routes))
        #expect(response.status == 503)
        #expect(response.text.contains("--services-file"))
    }

    @Test("never shows a token, whatever the user's id")
    func noToken() async throws {
        try await fixture.add(user: "<u-1>", accessToken: "ya29.secret", refreshToken: "1//secret")
        let text = String(decoding: try await send([("user", "<u-1>")], Self.jane).body, as: UTF8.self)
        #expect(!text.contains("secret"))
        #expect(!text.contains("<u-1>"))
    }

    @Test("over TLS the page asks for a service's credential, of any service")
    func overNetwork() async throws {
        let routes = await fixture.routes(exposure: .network(servesMetrics: false))
        func page(_ authorization: String...) async throws -> ServerResponse {
            let headers: [ServerRequest.Field] = authorization.map { ("Authorization", $0) }
            let request = ServerRequest(method: "GET", path: "/", headers: headers)
            return try await VendingFixture.response(to: request, from: routes)
        }
        let refused = ParsedResponse(try await page())
        #expect(refused.status == 401)
        #expect(refused.header("WWW-Authenticate")?.hasPrefix("Basic ") == true)
        #expect(try await page(Self.basic("full", VendingFixture.credential)).status == 200)
        #expect(try await page(Self.jane).status == 200)
    }

    @Test("does not let an operator without scopes have tokens")
    func noTokens() async throws {
        try await fixture.add()
        let response = await fixture.send(authorization: [Self.jane])
        #expect(response.error == "403 forbidden")
        #expect(response["message"]?.string?.contains("scopes") == true)
    }
}

import Base
import Foundation
import GoogleOAuth
import Status
import Storage
import Telemetry
import TestSupport
import Testing

@testable import HTTPServer
@testable import Routes

@Suite("Looking up a user", .timeLimit(.minutes(10)))
struct UserLookupTests {
    private let fixture: VendingFixture

    init() throws {
        fixture = try VendingFixture()
    }

    private static let jane = "Bearer \(VendingFixture.operatorCredential)"
    private static let joe = "Bearer \(VendingFixture.limitedOperatorCredential)"
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
        return try await fixture.lookup(database).answer(request(query, [Self.jane]))
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
        fixture.endpoint.setVerdict(.endpointFault(code: "http_503"))
        _ = await fixture.send()
        guard case .found(let grant, let history) = try await lookup(Self.user) else {
            Issue.record("the user was not found")
            return
        }
        #expect(grant.id == id && grant.state == .retrying)
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
            [], [("user", "")], [("user", "a"), ("user", "a")], [("users", "a")],
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

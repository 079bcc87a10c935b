import Foundation
import GoogleOAuth
import Storage
import TestSupport
import Testing

@testable import Base
@testable import HTTPServer
@testable import Routes
@testable import Telemetry

private let gmail = "https://mail.google.com/"
private let exchange = "grant_type=urn:ietf:params:oauth:grant-type:token-exchange"
private let refreshType = "subject_token_type=urn:ietf:params:oauth:token-type:refresh_token"
private let accessType = "urn:ietf:params:oauth:token-type:access_token"

private func basicHeader(_ text: String) -> String { "Basic \(Data(text.utf8).base64EncodedString())" }

@Suite("The token endpoint", .timeLimit(.minutes(10)))
struct TokenEndpointTests {
    // MARK: Tokens

    @Test("returns a valid token with all fields of RFC 6749, and audits it by the grant's id")
    func served() async throws {
        let fixture = try VendingFixture()
        let id = try await fixture.add()
        fixture.time.advance(by: .milliseconds(600_500))
        let response = await fixture.postForm("scope=\(gmail)")
        #expect(response.status == 200)
        #expect(response.header("Cache-Control") == "no-store" && response.header("Pragma") == "no-cache")
        let expected: [String: JSONValue] = [
            "access_token": .string("stored"), "token_type": .string("Bearer"), "expires_in": .number("2999"),
            "scope": .string("openid \(gmail)"),
        ]
        #expect(response.body == .object(expected))
        let line = try #require(fixture.audit.vends.first)
        #expect(line["service"]?.string == "full" && line["outcome"]?.string == "served")
        #expect(line["grant"]?.string == id.description && line["scopes"]?.string == gmail)
        #expect(fixture.counters.lifetime.vends == ["served": 1])
        #expect(fixture.endpoint.calls == 0)
    }

    @Test("refreshes a token that ends within five minutes, which libraries would not cache")
    func refreshed() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        fixture.time.advance(by: .seconds(3299))
        #expect(await fixture.postForm().token == "stored")
        fixture.time.advance(by: .seconds(2))
        #expect(await fixture.postForm().token == "access-1")
        #expect(await fixture.postForm().token == "access-1")
        #expect(fixture.endpoint.calls == 1)
        #expect(fixture.audit.vends.map { $0["outcome"]?.string } == ["served", "refreshed", "served"])
    }

    @Test("accepts HTTP Basic, with or without the same client_id in the form")
    func basic() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        let header = basicHeader("full:\(VendingFixture.credential)")
        for login in ["", "client_id=full", "client_id="] {
            #expect(await fixture.postForm(login: login, authorization: [header]).token == "stored")
        }
    }

    @Test("ignores unknown parameters and those without a value, and accepts a parameter of the type")
    func tolerant() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        let response = await fixture.postForm(
            "rapt=&scope=&other=1&other=%00%ff&actor_token=",
            contentType: "Application/X-WWW-Form-Urlencoded; charset=UTF-8"
        )
        #expect(response.token == "stored")
    }

    @Test("exchanges a user's id by RFC 8693")
    func exchanged() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        let grant = "\(exchange)&subject_token=u/1&\(refreshType)"
        for more in ["", "&requested_token_type=\(accessType)", "&audience=&resource="] {
            let response = await fixture.postForm(grant: grant + more)
            #expect(response.token == "stored")
            #expect(response["issued_token_type"]?.string == accessType)
        }
        fixture.audit.refuse()
        #expect(await fixture.postForm(grant: grant).error == "503 temporarily_unavailable")
    }

    @Test("accepts a handle of the service, and refuses one of another without saying that the user is gone")
    func handles() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        let services = try ServiceList(parsing: VendingFixture.services.utf8)
        let own = try #require(services.service(named: "full")).handle(of: "u/1")
        let foreign = try #require(services.service(named: "limited")).handle(of: "u/1")
        #expect(await fixture.postForm(grant: "grant_type=refresh_token&refresh_token=\(own)").token == "stored")
        for handle in [foreign, own + "A", "rwh_"] {
            let response = await fixture.postForm(grant: "grant_type=refresh_token&refresh_token=\(handle)")
            #expect(response.error == "400 invalid_request")
        }
    }

    @Test("gives no token for a handle whose connection the entry has lost since")
    func handleOfLostConnection() async throws {
        let fixture = try VendingFixture()
        let work = try #require(ConnectionID("work"))
        try await fixture.add()
        try await fixture.add(connection: work, accessToken: "of-work")
        let full = try #require(try ServiceList(parsing: VendingFixture.services.utf8).service(named: "full"))
        let handles = try [full.handle(of: "u/1", connection: work), full.handle(of: "u/1", connection: .default)]
        func tokens() async -> [String] {
            var tokens: [String] = []
            for handle in handles {
                let response = await fixture.postForm(grant: "grant_type=refresh_token&refresh_token=\(handle)")
                tokens.append(response.token ?? response.error)
            }
            return tokens
        }
        #expect(await tokens() == ["of-work", "stored"])
        try fixture.limitConnections(ofEntriesWith: #""scopes": ["*"], "users": ["*"]"#)
        #expect(await tokens() == ["400 unauthorized_client", "stored"])
    }

    // MARK: Refusals

    @Test(
        "refuses a caller that does not present exactly one known name with its credential, and audits nothing",
        arguments: [
            ("", []), ("client_id=full", []), ("client_secret=\(VendingFixture.credential)", []),
            ("client_id=full&client_secret=wrong", []),
            ("client_id=limited&client_secret=\(VendingFixture.credential)", []),
            ("client_id=unknown&client_secret=\(VendingFixture.credential)", []),
            ("client_id=full&client_secret=\(VendingFixture.hash(of: VendingFixture.credential))", []),
            ("", ["Bearer \(VendingFixture.credential)"]), ("", [basicHeader("full:wrong")]),
            ("", [basicHeader("full")]),
            ("", ["Basic full:\(VendingFixture.credential)"]),
            ("", [basicHeader("full:\(VendingFixture.credential)"), basicHeader("full:\(VendingFixture.credential)")]),
        ] as [(String, [String])]
    )
    func unauthorized(login: String, authorization: [String]) async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        let response = await fixture.postForm(login: login, authorization: authorization)
        #expect(response.error == "401 invalid_client")
        #expect(response.header("WWW-Authenticate")?.hasPrefix("Basic ") == true)
        #expect(fixture.audit.vends.isEmpty)
        #expect(fixture.counters.lifetime.vends == ["unauthorized": 1])
    }

    @Test("refuses two ways to authenticate, and two names")
    func ambiguousLogin() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        let header = basicHeader("full:\(VendingFixture.credential)")
        let secret = "client_secret=\(VendingFixture.credential)"
        for (login, header) in [
            ("client_id=full&\(secret)", header), (secret, header), ("client_id=limited", header),
            ("client_id=full&\(secret)", "Bearer \(VendingFixture.credential)"),
        ] {
            let response = await fixture.postForm(login: login, authorization: [header])
            #expect(response.error == "400 invalid_request")
        }
        #expect(fixture.audit.vends.isEmpty)
    }

    @Test(
        "refuses a form that is ambiguous, too large or not a form",
        arguments: [
            "client_id=full", "grant_type=refresh_token", "refresh_token=u/1", "scope=a&scope=a", "scope=a&scope=",
            "scope=a%00b", "scope=%ff", "scope=%0a", "audience=\(String(repeating: "x", count: 4097))",
            String(repeating: "&", count: 32),
        ]
    )
    func form(more: String) async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        #expect(await fixture.postForm(more).error == "400 invalid_request")
    }

    @Test("refuses parameters in the URL, which logs would show, and other media types")
    func place() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        #expect(await fixture.postForm(query: [("scope", "openid")]).error == "400 invalid_request")
        for type in [nil, "application/json", "text/plain", "application/x-www-form-urlencodedx"] {
            #expect(await fixture.postForm(contentType: type).error == "400 invalid_request")
        }
    }

    @Test(
        "refuses what it does not have, with the code of the RFC",
        arguments: [
            ("", "invalid_request"), ("grant_type=", "invalid_request"),
            ("grant_type=password&refresh_token=u/1", "unsupported_grant_type"),
            ("grant_type=authorization_code", "unsupported_grant_type"),
            ("grant_type=client_credentials", "unsupported_grant_type"),
            ("grant_type=refresh_token", "invalid_request"),
            ("grant_type=refresh_token&refresh_token=", "invalid_request"),
            ("\(exchange)&subject_token=u/1", "invalid_request"),
            ("\(exchange)&subject_token=u/1&subject_token_type=\(accessType)", "invalid_request"),
            ("\(exchange)&\(refreshType)", "invalid_request"),
            ("\(exchange)&\(refreshType)&subject_token=u/1&audience=a", "invalid_target"),
            ("\(exchange)&\(refreshType)&subject_token=u/1&resource=a&resource=b", "invalid_target"),
            ("\(exchange)&\(refreshType)&subject_token=u/1&actor_token=a", "invalid_request"),
            ("\(exchange)&\(refreshType)&subject_token=u/1&requested_token_type=a", "invalid_request"),
            ("grant_type=refresh_token&refresh_token=u/1&scope=a%22b", "invalid_request"),
        ]
    )
    func unsupported(grant: String, code: String) async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        #expect(await fixture.postForm(grant: grant).error == "400 \(code)")
        #expect(fixture.audit.vends.map { $0["outcome"]?.string } == [code])
        #expect(fixture.endpoint.calls == 0)
    }

    @Test(
        "gives a service only its users and its scopes",
        arguments: [
            ("u/1", gmail, "200 "), ("u/1", "", "400 invalid_scope"), ("u/1", "openid", "400 invalid_scope"),
            ("u/2", gmail, "400 unauthorized_client"), ("unknown", gmail, "400 unauthorized_client"),
        ]
    )
    func limited(user: String, scope: String, expected: String) async throws {
        let fixture = try VendingFixture()
        try await fixture.add(user: "u/1")
        try await fixture.add(user: "u/2")
        let response = await fixture.postForm(
            grant: "grant_type=refresh_token&refresh_token=\(user)&scope=\(scope)",
            login: "client_id=limited&client_secret=\(VendingFixture.limitedCredential)"
        )
        #expect(response.error == expected)
        #expect(fixture.audit.vends.map { $0["service"]?.string } == ["limited"])
    }

    @Test("names the scopes that the user has not granted")
    func missingScopes() async throws {
        let fixture = try VendingFixture()
        try await fixture.add(scope: "openid")
        let response = await fixture.postForm("scope=openid+\(gmail)")
        #expect(response.error == "400 invalid_scope")
        #expect(response.description.hasSuffix(": \(gmail)"))
    }

    // MARK: Users who are gone, and everything else

    @Test("says invalid_grant only of a user who must sign in again")
    func gone() async throws {
        let fixture = try VendingFixture()
        #expect(await fixture.postForm().error == "400 invalid_grant")
        try await fixture.add()
        let now = fixture.time.now
        try await fixture.change { $0.disconnect(reason: .invalidGrant, at: now) }
        let response = await fixture.postForm()
        #expect(response.error == "400 invalid_grant")
        #expect(response.description.hasSuffix("invalid_grant since 2027-01-15T08:00:00Z"))
        #expect(fixture.endpoint.calls == 0)
        let other = try VendingFixture()
        try await other.add(refreshToken: nil)
        other.time.advance(by: .seconds(3601))
        #expect(await other.postForm().error == "400 invalid_grant")
    }

    @Test("says 503 with Retry-After while Google cannot be reached")
    func unreachable() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        fixture.endpoint.setFailure(.noAnswer(code: "timeout"))
        fixture.time.advance(by: .seconds(3500))
        #expect(await fixture.postForm()["expires_in"] == .number("100"))
        fixture.time.advance(by: .seconds(100))
        let response = await fixture.postForm()
        #expect(response.error == "503 temporarily_unavailable" && response.header("Retry-After") == "5")
        #expect(fixture.audit.vends.map { $0["outcome"]?.string } == ["warning", "unavailable"])
    }

    @Test("says 503 of a suspended grant, because the block may be lifted")
    func suspended() {
        let error = ServiceError.mustAct(
            state: .suspended,
            reason: GrantReason(rawValue: "admin_policy_enforced"),
            since: Timestamp(milliseconds: 0)
        )
        let response = ParsedResponse(error.oauthResponse)
        #expect(response.error == "503 temporarily_unavailable")
        #expect(response.header("Retry-After") == "3600")
    }

    @Test("a request that the server itself refuses gets an error of the RFC too")
    func refusedByServer() {
        func response(_ refusal: RequestError, _ path: String) -> ParsedResponse {
            ParsedResponse(InternalRoutes.response(toRefused: refusal, path: path))
        }
        let tooLarge = response(.bodyTooLarge, "/oauth2/token")
        #expect(tooLarge.error == "413 invalid_request" && tooLarge.description == "the body is too large")
        let full = response(.outOfMemory, "/oauth2/token")
        #expect(full.error == "503 temporarily_unavailable" && full.header("Retry-After") == "5")
        #expect(response(.outOfMemory, "/v1/grants/u/token").error == "503 unavailable")
    }

    /// A client whose refreshes succeed, and a proven grant that Google refuses from now on.
    private func provenFixture(_ refusal: RefreshFailure = .invalidGrant) async throws -> VendingFixture {
        let fixture = try VendingFixture()
        try await fixture.add(accessToken: nil)
        #expect(await fixture.postForm().token == "access-1")
        fixture.time.advance(by: .seconds(4000))
        for number in 2...100 {
            // Within the client's pace.
            fixture.time.advance(by: .seconds(1))
            try await fixture.add(user: "u/\(number)", accessToken: nil)
            _ = await fixture.send(user: "u/\(number)")
        }
        fixture.endpoint.setFailure(refusal)
        return fixture
    }

    @Test(
        "does not say invalid_grant of an end that a wave can still undo, until it cannot",
        arguments: [
            (RefreshFailure.invalidGrant, GrantState.disconnected, "invalid_grant_unconfirmed"),
            (.signInRequired(code: "invalid_rapt"), .reauthRequired, "refusal_unconfirmed"),
        ]
    )
    func recallable(refusal: RefreshFailure, state: GrantState, reason: String) async throws {
        let fixture = try await provenFixture(refusal)
        let calls = fixture.endpoint.calls
        let first = await fixture.postForm()
        #expect(first.error == "503 temporarily_unavailable" && first.header("Retry-After") == "600")
        #expect(first.description.hasSuffix(": \(reason)"))
        #expect(try await fixture.store.grant(ofUser: "u/1")?.state == state)
        #expect(fixture.audit.vends.last?["outcome"]?.string == "unavailable")
        fixture.time.advance(by: .milliseconds(599_500))
        let last = await fixture.postForm()
        #expect(last.error == "503 temporarily_unavailable" && last.header("Retry-After") == "1")
        fixture.time.advance(by: .milliseconds(500))
        #expect(await fixture.postForm().error == "400 invalid_grant")
        #expect(fixture.endpoint.calls == calls + 1)
    }

    @Test("says invalid_grant at once of an end that no wave can undo")
    func notRecallable() async throws {
        // A grant that was never refreshed is not recalled.
        let unproven = try VendingFixture()
        try await unproven.add(accessToken: nil)
        unproven.endpoint.setFailure(.invalidGrant)
        #expect(await unproven.postForm().error == "400 invalid_grant")

        let fixture = try await provenFixture()
        #expect(await fixture.postForm().error == "503 temporarily_unavailable")
        // The user disconnects within these ten minutes.
        let now = fixture.time.now
        try await fixture.change { $0.disconnectByRequest(revokes: false, at: now) }
        #expect(await fixture.postForm().error == "400 invalid_grant")
    }

    @Test("gives each error a code of the RFC and a description that the RFC permits")
    func forms() {
        let errors: [ServiceError] = [
            .invalidRequest("why"), .unsupportedGrantType, .invalidTarget, .unauthorized, .forbiddenUser,
            .forbiddenScopes, .unnamedScopes, .noGrant, .missingScopes(["openid"]),
            .mustAct(state: .reauthRequired, reason: .none, since: Timestamp(milliseconds: 0)),
            .unavailable(reason: "timeout", wait: .seconds(1)), .storeUnavailable, .auditUnavailable, .unreadableToken,
            .forbiddenTokens,
        ]
        for error in errors {
            let response = ParsedResponse(error.oauthResponse)
            #expect(response.status != 503 || response.header("Retry-After") != nil)
            let isGone = response["error"]?.string == "invalid_grant"
            #expect(isGone == [ServiceError.noGrant, errors[9]].contains(error))
            let isPermitted = response.description.utf8.allSatisfy {
                (0x20...0x7e).contains($0) && $0 != 0x22 && $0 != 0x5c
            }
            #expect(isPermitted && !response.description.isEmpty)
            #expect(response.header("Cache-Control") == "no-store")
        }
    }
}

extension ParsedResponse {
    fileprivate var description: String { body?["error_description"]?.string ?? "" }
}

extension VendingFixture {
    /// Posts a form: what is asked for, the login, and more parameters.
    fileprivate func postForm(
        _ more: String = "",
        grant: String = "grant_type=refresh_token&refresh_token=u%2F1",
        login: String = "client_id=full&client_secret=\(VendingFixture.credential)",
        authorization: [String] = [],
        contentType: String? = "application/x-www-form-urlencoded",
        query: [ServerRequest.Field] = []
    ) async -> ParsedResponse {
        let request = ServerRequest(
            method: "POST",
            path: "/oauth2/token",
            query: query,
            headers: authorization.map { ("Authorization", $0) } + (contentType.map { [("content-type", $0)] } ?? []),
            body: Array([grant, login, more].joined(separator: "&").utf8)
        )
        return ParsedResponse(await handler.tokenEndpointResponse(to: request))
    }
}

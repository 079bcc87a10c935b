import GoogleOAuth
import HTTPServer
import Storage
import TestSupport
import Testing

@testable import Base
@testable import Telemetry

@Suite("A token for a service", .timeLimit(.minutes(10)))
struct TokenVendingHandlerTests {
    @Test("A valid token is returned with all fields of the contract, and audited by the grant's id")
    func served() async throws {
        let fixture = try VendingFixture()
        let id = try await fixture.add()
        fixture.time.advance(by: .milliseconds(600_500))
        let response = await fixture.send([("min_ttl", "60"), ("scope", VendingFixture.gmail)])
        #expect(response.status == 200)
        #expect(response.header("Cache-Control") == "no-store")
        let expected: [String: JSONValue] = [
            "access_token": .string("stored"), "token_type": .string("Bearer"), "expires_in": .number("2999"),
            "expires_at": .string("2027-01-15T09:00:00Z"),
            "granted_scopes": .array([.string("openid"), .string(VendingFixture.gmail)]), "warning": .null,
        ]
        #expect(response.body == .object(expected))
        #expect(fixture.endpoint.calls == 0)
        let line = try #require(fixture.audit.vends.first)
        #expect(line["service"]?.string == "full" && line["outcome"]?.string == "served")
        #expect(line["grant"]?.string == id.description && line["scopes"]?.string == VendingFixture.gmail)
        #expect(line["forced"]?.bool == false)
        #expect(fixture.counters.lifetime.vends == ["served": 1])
    }

    @Test("A token that expires too soon is refreshed, and the audit shows it")
    func refreshed() async throws {
        let fixture = try VendingFixture()
        try await fixture.add(lifetime: .seconds(59))
        // Four fifths of 59 s is less than the default of 60 s.
        fixture.time.advance(by: .seconds(12))
        #expect(await fixture.send().token == "access-1")
        #expect(await fixture.send().token == "access-1")
        #expect(fixture.audit.vends.map { $0["outcome"]?.string } == ["refreshed", "served"])
    }

    @Test("A token that is valid long enough is served with a warning while the grant's refreshes fail")
    func retrying() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        let now = fixture.time.now
        let reason = GrantReason(rawValue: "http_503")
        try await fixture.change { $0.retry(reason: reason, dueAt: now + .seconds(5), at: now) }
        let response = await fixture.send()
        #expect(response.token == "stored" && response["warning"]?.string == "http_503")
        try await fixture.makeImmediatelyReadable()
        #expect(fixture.sendImmediate()?["warning"]?.string == "http_503")
        #expect(fixture.audit.vends.map { $0["outcome"]?.string } == ["warning", "warning"])
        #expect(fixture.endpoint.calls == 0)
    }

    @Test(
        "While Google cannot be reached a valid token is served with a warning; later 503 says when to retry"
    )
    func unreachable() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        fixture.endpoint.setFailure(.noAnswer(code: "timeout"))
        fixture.time.advance(by: .seconds(3500))
        let old = await fixture.send([("min_ttl", "300")])
        #expect(old.token == "stored" && old["warning"]?.string == "timeout")
        fixture.time.advance(by: .seconds(100))
        let none = await fixture.send()
        #expect(none.error == "503 unavailable" && none.header("Retry-After") == "5")
        #expect(fixture.audit.vends.map { $0["outcome"]?.string } == ["warning", "unavailable"])
    }

    @Test(
        "Without exactly one known credential a request is refused, and neither read nor audited",
        arguments: [
            [], [""], ["Bearer"], ["Bearer "], ["Bearer unknown"], ["Basic \(VendingFixture.credential)"],
            [VendingFixture.credential], ["Bearer \(VendingFixture.credential) \(VendingFixture.credential)"],
            ["Bearer \(VendingFixture.credential),Bearer"],
            ["Bearer \(VendingFixture.credential)", "Bearer \(VendingFixture.credential)"],
            ["Bearer \(VendingFixture.hash(of: VendingFixture.credential))"],
        ]
    )
    func unauthorized(authorization: [String]) async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        let response = await fixture.send([("min_ttl", "wrong")], authorization: authorization)
        #expect(response.error == "401 unauthorized")
        #expect(response.header("WWW-Authenticate") == "Bearer")
        #expect(fixture.audit.vends.isEmpty)
        #expect(fixture.counters.lifetime.vends == ["unauthorized": 1])
    }

    @Test(
        "The scheme of the credential may be spelled in any case, with any blanks around the credential",
        arguments: [
            "bEARER \(VendingFixture.credential)", "Bearer  \(VendingFixture.credential)",
            "Bearer \(VendingFixture.credential) ",
        ]
    )
    func scheme(authorization: String) async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        #expect(await fixture.send(authorization: [authorization]).status == 200)
    }

    @Test(
        "An invalid query is refused",
        arguments: [
            [("min_ttl", "")], [("min_ttl", "-1")], [("min_ttl", "3601")], [("min_ttl", "1.5")], [("min_ttl", "+60")],
            [("min_ttl", "99999999999999999999")], [("min_ttl", "60"), ("min_ttl", "60")], [("min_ttl", "٣")],
            [("scope", "a\"b")], [("scope", "a\u{7f}")], [("scope", "é")],
            [("scope", String(repeating: "x", count: 1025))], [("conection", "work")],
        ] as [[(name: String, value: String)]]
    )
    func invalid(query: [ServerRequest.Field]) async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        #expect(await fixture.send(query).error == "400 invalid_request")
        #expect(fixture.audit.vends.map { $0["outcome"]?.string } == ["invalid_request"])
    }

    @Test("The limits of min_ttl are accepted", arguments: ["0", "3600"])
    func ends(minimum: String) async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        #expect(await fixture.send([("min_ttl", minimum)]).token == "stored")
    }

    /// The requests of a service that may have one scope of one user.
    @Test(
        "A service gets a token only for permitted users and for named, permitted scopes",
        arguments: [
            ("u/1", [VendingFixture.gmail], "200 "),
            ("u/1", ["\(VendingFixture.gmail) \(VendingFixture.gmail)"], "200 "),
            ("u/1", [], "403 forbidden"), ("u/1", [""], "403 forbidden"), ("u/1", ["openid"], "403 forbidden"),
            ("u/1", [VendingFixture.gmail, "openid"], "403 forbidden"),
            ("u/2", [VendingFixture.gmail], "403 forbidden"),
            ("unknown", [VendingFixture.gmail], "403 forbidden"),
        ]
    )
    func limited(user: String, scopes: [String], expected: String) async throws {
        let fixture = try VendingFixture()
        try await fixture.add(user: "u/1")
        try await fixture.add(user: "u/2")
        let response = await fixture.send(
            scopes.map { (name: "scope", value: $0) },
            user: user,
            authorization: ["Bearer \(VendingFixture.limitedCredential)"]
        )
        #expect(response.error == expected)
        #expect(fixture.audit.vends.count == 1)
        #expect(fixture.audit.vends.allSatisfy { $0["service"]?.string == "limited" })
    }

    @Test("Scopes that the user has not granted are named")
    func missingScopes() async throws {
        let fixture = try VendingFixture()
        try await fixture.add(scope: "openid https://www.googleapis.com/auth/userinfo.email")
        #expect(await fixture.send([("scope", "openid email")]).status == 200)
        let response = await fixture.send([("scope", "openid profile"), ("scope", VendingFixture.gmail)])
        #expect(response.error == "403 missing_scopes")
        #expect(response["missing"] == .array([.string("profile"), .string(VendingFixture.gmail)]))
        #expect(response.token == nil)
    }

    @Test("A grant whose scopes are unknown is served until a refresh names them")
    func unknownScopes() async throws {
        let fixture = try VendingFixture()
        try await fixture.add(scope: "")
        #expect(await fixture.send([("scope", VendingFixture.gmail)]).token == "stored")
        fixture.endpoint.narrow(to: "openid")
        fixture.time.advance(by: .seconds(3600))
        #expect(await fixture.send([("scope", VendingFixture.gmail)]).error == "403 missing_scopes")
    }

    @Test("A scope that the refresh itself has lost is missing too")
    func narrowed() async throws {
        let fixture = try VendingFixture()
        try await fixture.add(accessToken: nil)
        fixture.endpoint.narrow(to: "openid")
        let response = await fixture.send([("scope", VendingFixture.gmail)])
        #expect(response.error == "403 missing_scopes" && response.token == nil)
    }

    @Test("A user without a grant and a deleted user are unknown")
    func notFound() async throws {
        let fixture = try VendingFixture()
        #expect(await fixture.send().error == "404 not_found")
        try await fixture.add()
        try await fixture.store.transact { transaction in
            _ = try AccountDeletion.delete(user: "u/1", in: transaction, at: fixture.time.now)
        }
        let response = await fixture.send()
        #expect(response.error == "404 not_found")
        #expect(await fixture.renew(#"{"access_token":"stored"}"#).error == "404 not_found")
    }

    @Test("A grant that is disconnected is refused with reason and time, and Google is not called")
    func disconnected() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        fixture.time.advance(by: .seconds(60))
        let now = fixture.time.now
        try await fixture.change { $0.disconnect(reason: .invalidGrant, at: now) }
        fixture.time.advance(by: .seconds(60))
        for response in [await fixture.send(), await fixture.renew(#"{"access_token":"stored"}"#)] {
            #expect(response.error == "409 disconnected")
            #expect(response["reason"]?.string == "invalid_grant")
            #expect(response["since"]?.string == "2027-01-15T08:01:00Z")
        }
        #expect(fixture.endpoint.calls == 0)
    }

    @Test("Without a refresh token and after the access token's expiry the user must sign in again")
    func noRefreshToken() async throws {
        let fixture = try VendingFixture()
        try await fixture.add(refreshToken: nil)
        #expect(await fixture.send([("min_ttl", "3600")]).token == "stored")
        fixture.time.advance(by: .seconds(3601))
        let response = await fixture.send()
        #expect(response.error == "409 reauth_required")
        #expect(response["reason"]?.string == "no_refresh_token")
        #expect(response["since"]?.string == "2027-01-15T09:00:00Z")
    }

    @Test("A token is not returned if its audit may be lost")
    func auditUnavailable() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        fixture.audit.refuse()
        let response = await fixture.send()
        #expect(response.error == "503 audit_unavailable" && response.token == nil)
        #expect(response.header("Retry-After") == "5")
        #expect(fixture.counters.lifetime.vends == ["audit_unavailable": 1])
    }

    @Test("A caller that got a 401 gets another token once, and must wait before the next")
    func renewed() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        let first = await fixture.renew(#"{"access_token":"stored"}"#)
        #expect(first.token == "access-1")
        #expect(await fixture.renew(#"{"access_token":"stored"}"#).token == "access-1")
        fixture.time.advance(by: .milliseconds(2_500))
        let again = await fixture.renew(#"{"access_token":"access-1"}"#)
        #expect(again.error == "503 unavailable" && again["reason"]?.string == "just_tried")
        #expect(again["message"]?.string == "no fresh token can be had now")
        #expect(again.header("Retry-After") == "8")
        #expect(fixture.endpoint.calls == 1)
        #expect(fixture.audit.vends.map { $0["outcome"]?.string } == ["refreshed", "served", "unavailable"])
        #expect(fixture.audit.vends.allSatisfy { $0["forced"]?.bool == true })
    }

    @Test(
        "A body that does not name the token is refused",
        arguments: ["", "{}", "[]", #"{"access_token":""}"#, #"{"access_token":7}"#, #"{"access_token":"a b"}"#, "x"]
    )
    func body(text: String) async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        #expect(await fixture.renew(text).error == "400 invalid_request")
        #expect(fixture.endpoint.calls == 0)
    }

    @Test("The audit does not contain credentials, tokens or users")
    func secrecy() async throws {
        let fixture = try VendingFixture()
        try await fixture.add(user: "jane@example.com")
        _ = await fixture.send(user: "jane@example.com")
        _ = await fixture.renew(#"{"access_token":"stored"}"#, user: "jane@example.com")
        let text = fixture.audit.texts.joined(separator: "\n")
        #expect(fixture.audit.vends.count == 2)
        for secret in [VendingFixture.credential, "stored", "access-1", "1//refresh", "jane"] {
            #expect(!text.contains(secret))
        }
    }
}

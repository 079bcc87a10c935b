import Clocks
import GoogleOAuth
import HTTPServer
import JSON
import Observability
import Store
import Testing

@Suite("A token for a service", .timeLimit(.minutes(10)))
struct TokenDeskTests {
    @Test("A valid token is served with all fields of the contract, and audited by the grant's id")
    func served() async throws {
        let world = try VendWorld()
        let id = try await world.add()
        world.time.advance(by: .milliseconds(600_500))
        let answer = await world.ask([("min_ttl", "60"), ("scope", VendWorld.gmail)])
        #expect(answer.status == 200)
        #expect(answer.header("Cache-Control") == "no-store")
        let expected: [String: JSONValue] = [
            "access_token": .string("stored"), "token_type": .string("Bearer"), "expires_in": .number("2999"),
            "expires_at": .string("2027-01-15T09:00:00Z"),
            "granted_scopes": .array([.string("openid"), .string(VendWorld.gmail)]), "warning": .null,
        ]
        #expect(answer.body == .object(expected))
        #expect(world.endpoint.calls == 0)
        let line = try #require(world.audit.vends.first)
        #expect(line["service"]?.string == "full" && line["outcome"]?.string == "served")
        #expect(line["grant"]?.string == id.description && line["scopes"]?.string == VendWorld.gmail)
        #expect(line["forced"]?.bool == false)
        #expect(world.counters.running.counts.vends == ["served": 1])
    }

    @Test("A token that expires too soon is refreshed, and the audit shows it")
    func refreshed() async throws {
        let world = try VendWorld()
        try await world.add(lifetime: .seconds(59))
        // Four fifths of 59 s is less than the default of 60 s.
        world.time.advance(by: .seconds(12))
        #expect(await world.ask().token == "access-1")
        #expect(await world.ask().token == "access-1")
        #expect(world.audit.vends.map { $0["outcome"]?.string } == ["refreshed", "served"])
    }

    @Test("A token that is valid long enough is served with a warning while the grant's refreshes fail")
    func retrying() async throws {
        let world = try VendWorld()
        try await world.add()
        let now = world.time.now
        let reason = GrantReason(rawValue: "http_503")
        try await world.change { $0.retry(reason: reason, dueAt: now + .seconds(5), at: now) }
        let answer = await world.ask()
        #expect(answer.token == "stored" && answer.body["warning"]?.string == "http_503")
        try await world.readPromptly()
        #expect(world.askPromptly()?.body["warning"]?.string == "http_503")
        #expect(world.audit.vends.map { $0["outcome"]?.string } == ["warning", "warning"])
        #expect(world.endpoint.calls == 0)
    }

    @Test(
        "While Google cannot be reached a valid token is served with a warning; later 503 says when to retry"
    )
    func unreachable() async throws {
        let world = try VendWorld()
        try await world.add()
        world.endpoint.answer(.noAnswer(code: "timeout"))
        world.time.advance(by: .seconds(3500))
        let old = await world.ask([("min_ttl", "300")])
        #expect(old.token == "stored" && old.body["warning"]?.string == "timeout")
        world.time.advance(by: .seconds(100))
        let none = await world.ask()
        #expect(none.error == "503 unavailable" && none.header("Retry-After") == "5")
        #expect(world.audit.vends.map { $0["outcome"]?.string } == ["warning", "unavailable"])
    }

    @Test(
        "Without exactly one known credential a request is refused, and neither read nor audited",
        arguments: [
            [], [""], ["Bearer"], ["Bearer "], ["Bearer nobody"], ["Basic \(VendWorld.credential)"],
            [VendWorld.credential], ["Bearer \(VendWorld.credential) \(VendWorld.credential)"],
            ["Bearer \(VendWorld.credential),Bearer"],
            ["Bearer \(VendWorld.credential)", "Bearer \(VendWorld.credential)"],
            ["Bearer \(VendWorld.hash(of: VendWorld.credential))"],
        ]
    )
    func unauthorized(authorization: [String]) async throws {
        let world = try VendWorld()
        try await world.add()
        let answer = await world.ask([("min_ttl", "wrong")], authorization: authorization)
        #expect(answer.error == "401 unauthorized")
        #expect(answer.header("WWW-Authenticate") == "Bearer")
        #expect(world.audit.vends.isEmpty)
        #expect(world.counters.running.counts.vends == ["unauthorized": 1])
    }

    @Test(
        "The scheme of the credential may be spelled in any case, with any blanks around the credential",
        arguments: [
            "bEARER \(VendWorld.credential)", "Bearer  \(VendWorld.credential)", "Bearer \(VendWorld.credential) ",
        ]
    )
    func scheme(authorization: String) async throws {
        let world = try VendWorld()
        try await world.add()
        #expect(await world.ask(authorization: [authorization]).status == 200)
    }

    @Test(
        "An invalid query is refused",
        arguments: [
            [("min_ttl", "")], [("min_ttl", "-1")], [("min_ttl", "3601")], [("min_ttl", "1.5")], [("min_ttl", "+60")],
            [("min_ttl", "99999999999999999999")], [("min_ttl", "60"), ("min_ttl", "60")], [("min_ttl", "٣")],
            [("scope", "a\"b")], [("scope", "a\u{7f}")], [("scope", "é")],
            [("scope", String(repeating: "x", count: 1025))],
        ] as [[(name: String, value: String)]]
    )
    func invalid(query: [ServerRequest.Field]) async throws {
        let world = try VendWorld()
        try await world.add()
        #expect(await world.ask(query).error == "400 invalid_request")
        #expect(world.audit.vends.map { $0["outcome"]?.string } == ["invalid_request"])
    }

    @Test("The limits of min_ttl are accepted", arguments: ["0", "3600"])
    func ends(minimum: String) async throws {
        let world = try VendWorld()
        try await world.add()
        #expect(await world.ask([("min_ttl", minimum)]).token == "stored")
    }

    /// The requests of a service that may have one scope of one user.
    @Test(
        "A service gets a token only for permitted users and for named, permitted scopes",
        arguments: [
            ("u/1", [VendWorld.gmail], "200 "), ("u/1", ["\(VendWorld.gmail) \(VendWorld.gmail)"], "200 "),
            ("u/1", [], "403 forbidden"), ("u/1", [""], "403 forbidden"), ("u/1", ["openid"], "403 forbidden"),
            ("u/1", [VendWorld.gmail, "openid"], "403 forbidden"), ("u/2", [VendWorld.gmail], "403 forbidden"),
            ("nobody", [VendWorld.gmail], "403 forbidden"),
        ]
    )
    func limited(user: String, scopes: [String], expected: String) async throws {
        let world = try VendWorld()
        try await world.add(user: "u/1")
        try await world.add(user: "u/2")
        let answer = await world.ask(
            scopes.map { (name: "scope", value: $0) },
            user: user,
            authorization: ["Bearer \(VendWorld.limitedCredential)"]
        )
        #expect(answer.error == expected)
        #expect(world.audit.vends.count == 1)
        #expect(world.audit.vends.allSatisfy { $0["service"]?.string == "limited" })
    }

    @Test("Scopes that the user has not granted are named")
    func missingScopes() async throws {
        let world = try VendWorld()
        try await world.add(scope: "openid https://www.googleapis.com/auth/userinfo.email")
        #expect(await world.ask([("scope", "openid email")]).status == 200)
        let answer = await world.ask([("scope", "openid profile"), ("scope", VendWorld.gmail)])
        #expect(answer.error == "403 missing_scopes")
        #expect(answer.body["missing"] == .array([.string("profile"), .string(VendWorld.gmail)]))
        #expect(answer.token == nil)
    }

    @Test("A scope that the refresh itself has lost is missing too")
    func narrowed() async throws {
        let world = try VendWorld()
        try await world.add(accessToken: nil)
        world.endpoint.narrow(to: "openid")
        let answer = await world.ask([("scope", VendWorld.gmail)])
        #expect(answer.error == "403 missing_scopes" && answer.token == nil)
    }

    @Test("A user without a grant and a deleted user are unknown")
    func notFound() async throws {
        let world = try VendWorld()
        #expect(await world.ask().error == "404 not_found")
        try await world.add()
        try await world.store.transact { transaction in
            _ = try AccountDeletion.delete(user: "u/1", in: transaction, at: world.time.now, until: world.time.now)
        }
        let answer = await world.ask()
        #expect(answer.error == "404 not_found")
        #expect(await world.renew(#"{"access_token":"stored"}"#).error == "404 not_found")
    }

    @Test("A grant that is disconnected is refused with reason and time, and Google is not called")
    func disconnected() async throws {
        let world = try VendWorld()
        try await world.add()
        world.time.advance(by: .seconds(60))
        let now = world.time.now
        try await world.change { $0.disconnect(reason: .invalidGrant, at: now) }
        world.time.advance(by: .seconds(60))
        for answer in [await world.ask(), await world.renew(#"{"access_token":"stored"}"#)] {
            #expect(answer.error == "409 disconnected")
            #expect(answer.body["reason"]?.string == "invalid_grant")
            #expect(answer.body["since"]?.string == "2027-01-15T08:01:00Z")
        }
        #expect(world.endpoint.calls == 0)
    }

    @Test("Without a refresh token and after the access token's expiry the user must sign in again")
    func noRefreshToken() async throws {
        let world = try VendWorld()
        try await world.add(refreshToken: nil)
        #expect(await world.ask([("min_ttl", "3600")]).token == "stored")
        world.time.advance(by: .seconds(3601))
        let answer = await world.ask()
        #expect(answer.error == "409 reauth_required")
        #expect(answer.body["reason"]?.string == "no_refresh_token")
        #expect(answer.body["since"]?.string == "2027-01-15T09:00:00Z")
    }

    @Test("A token is not answered if its audit may be lost")
    func auditUnavailable() async throws {
        let world = try VendWorld()
        try await world.add()
        world.audit.refuse()
        let answer = await world.ask()
        #expect(answer.error == "503 audit_unavailable" && answer.token == nil)
        #expect(answer.header("Retry-After") == "5")
        #expect(world.counters.running.counts.vends == ["audit_unavailable": 1])
    }

    @Test("A caller that got a 401 gets another token once, and must wait before the next")
    func renewed() async throws {
        let world = try VendWorld()
        try await world.add()
        let first = await world.renew(#"{"access_token":"stored"}"#)
        #expect(first.token == "access-1")
        #expect(await world.renew(#"{"access_token":"stored"}"#).token == "access-1")
        world.time.advance(by: .milliseconds(2_500))
        let again = await world.renew(#"{"access_token":"access-1"}"#)
        #expect(again.error == "503 unavailable" && again.body["reason"]?.string == "just_tried")
        #expect(again.header("Retry-After") == "8")
        #expect(world.endpoint.calls == 1)
        #expect(world.audit.vends.map { $0["outcome"]?.string } == ["refreshed", "served", "unavailable"])
        #expect(world.audit.vends.allSatisfy { $0["forced"]?.bool == true })
    }

    @Test(
        "A body that does not name the token is refused",
        arguments: ["", "{}", "[]", #"{"access_token":""}"#, #"{"access_token":7}"#, #"{"access_token":"a b"}"#, "x"]
    )
    func body(text: String) async throws {
        let world = try VendWorld()
        try await world.add()
        #expect(await world.renew(text).error == "400 invalid_request")
        #expect(world.endpoint.calls == 0)
    }

    @Test("The audit does not contain credentials, tokens or users")
    func secrecy() async throws {
        let world = try VendWorld()
        try await world.add(user: "jane@example.com")
        _ = await world.ask(user: "jane@example.com")
        _ = await world.renew(#"{"access_token":"stored"}"#, user: "jane@example.com")
        let text = world.audit.texts.joined(separator: "\n")
        #expect(world.audit.vends.count == 2)
        for secret in [VendWorld.credential, "stored", "access-1", "1//refresh", "jane"] {
            #expect(!text.contains(secret))
        }
    }
}

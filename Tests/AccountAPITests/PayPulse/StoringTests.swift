import Clocks
import GoogleOAuth
import JSON
import RefreshEngine
import Secrets
import Store
import Testing

@testable import AccountAPI

@Suite("Storing what the app brings")
struct StoringTests {
    private static let path = "/v1/auth/gmail-tokens"

    // MARK: Success

    @Test("a first connection", arguments: [path, "/v1/auth/gmail/store-tokens"])
    func first(path: String) async throws {
        let world = try AccountWorld()
        world.google.know("ya29.jane")
        let answer = try await world.ask(
            "POST",
            path,
            token: world.token(ofUser: "42"),
            json: """
                {"access_token":"ya29.jane","refresh_token":"1//jane","expires_in":3600,"scope":["a","b"],
                "email":"liar@example.com"}
                """
        )
        #expect(answer.status == 201)
        #expect(answer["message"] == .string("Gmail OAuth tokens stored successfully!"))
        #expect(answer["code"] == .number("201"))
        let expected: [String: JSONValue] = [
            "google_email": .string("jane@gmail.com"), "scope": .string("openid gmail"), "account_switch": .bool(false),
            "message": .string("First Gmail connection"),
        ]
        #expect(answer.data?.object == expected)
        let grant = try #require(try await world.grant())
        #expect(grant.state == .active)
        #expect(grant.clientID == FakeGoogle.clientID)
        #expect(grant.owner.googleUserID == "g-1")
        #expect(grant.accessToken?.expiresAt == world.time.now + .seconds(1800))
        #expect(try await world.refreshToken() == "1//jane")
        #expect(try await world.accessToken() == "ya29.jane")
        #expect(try await world.store.user("42")?.name == "Jane Smith")
    }

    @Test("the body serves where Google is silent")
    func silentGoogle() async throws {
        let world = try AccountWorld()
        world.google.know("ya29.jane", .init(scope: nil, lifetime: nil))
        let fields = #","expires_in":"600","scope":"a,b  c","refresh_token_expires_in":604800"#
        let answer = try await world.connect("ya29.jane", refreshToken: "1//jane", also: fields)
        #expect(answer.data?["scope"] == .string("a b c"))
        let grant = try #require(try await world.grant())
        #expect(grant.accessToken?.expiresAt == world.time.now + .seconds(600))
        #expect(grant.refreshToken?.expiresAt == world.time.now + .seconds(604_800))
    }

    @Test("nobody tells a lifetime: an hour")
    func usualLifetime() async throws {
        let world = try AccountWorld()
        world.google.know("ya29.jane", .init(scope: nil, lifetime: nil))
        let answer = try await world.connect("ya29.jane")
        #expect(answer.data?["scope"] == .string(""))
        #expect(try await world.grant()?.accessToken?.expiresAt == world.time.now + .seconds(3600))
    }

    @Test("a form")
    func form() async throws {
        let world = try AccountWorld()
        world.google.know("ya29.jane", .init(scope: nil, lifetime: nil))
        let answer = try await world.ask(
            "POST",
            Self.path,
            token: world.token(ofUser: "42"),
            form: "access_token=ya29.jane&refresh_token=1%2F%2Fjane&expires_in=600&scope=a+b&scope=c"
        )
        #expect(answer.status == 201)
        #expect(answer.data?["scope"] == .string("a b c"))
        #expect(try await world.refreshToken() == "1//jane")
    }

    // MARK: The same account and another

    @Test("without a refresh token the same account's stored one stays")
    func sameAccount() async throws {
        let world = try AccountWorld()
        world.google.know("ya29.jane")
        _ = try await world.connect("ya29.jane", refreshToken: "1//jane")
        let former = try #require(try await world.grant())
        world.google.know("ya29.wider", .init(scope: "openid gmail calendar"))
        let answer = try await world.connect("ya29.wider")
        #expect(answer.data?["account_switch"] == .bool(false))
        #expect(answer.data?["message"] == .string("Same Google account or first connection"))
        #expect(try await world.refreshToken() == "1//jane")
        let grant = try #require(try await world.grant())
        #expect(grant.id == former.id && grant.generation == former.generation)
        #expect(grant.scope == "openid gmail calendar")
    }

    @Test("the refresh token that is stored already is no new one")
    func sameToken() async throws {
        let world = try AccountWorld()
        world.google.know("ya29.jane")
        _ = try await world.connect("ya29.jane", refreshToken: "1//jane")
        let former = try #require(try await world.grant())
        _ = try await world.connect("ya29.jane", refreshToken: "1//jane")
        #expect(try await world.grant()?.generation == former.generation)
        _ = try await world.connect("ya29.jane", refreshToken: "1//newer")
        #expect(try await world.grant()?.generation == former.generation + 1)
        #expect(try await world.refreshToken() == "1//newer")
    }

    @Test("another account's connection keeps nothing of the former")
    func accountSwitch() async throws {
        let world = try AccountWorld()
        world.google.know("ya29.jane", .init(lifetime: 3599))
        world.google.know("ya29.john", .init(id: "g-2", email: "john@gmail.com", name: "John"))
        _ = try await world.connect("ya29.jane", refreshToken: "1//jane")
        let answer = try await world.connect("ya29.john")
        #expect(answer.data?["account_switch"] == .bool(true))
        #expect(answer.data?["message"] == .string("Switching from jane@gmail.com to john@gmail.com"))
        #expect(try await world.refreshToken() == nil)
        #expect(try await world.accessToken() == "ya29.john")
        #expect(try await world.grant()?.owner.email == "john@gmail.com")
    }

    @Test(
        "a refresh token that is known to be another account's is not taken, whichever user has it",
        arguments: ["42", "43"]
    )
    func foreignRefreshToken(user: String) async throws {
        let world = try AccountWorld()
        world.google.know("ya29.jane", .init(lifetime: 3599))
        world.google.know("ya29.john", .init(id: "g-2", email: "john@gmail.com", name: "John"))
        _ = try await world.connect("ya29.jane", refreshToken: "1//jane")
        let answer = try await world.connect("ya29.john", refreshToken: "1//jane", user: user)
        #expect(answer.status == 201)
        #expect(try await world.refreshToken(ofUser: user) == nil)
        #expect(try await world.grant(ofUser: user)?.owner.email == "john@gmail.com")
    }

    @Test("what is learnt to be another account's is not kept, though the app brings it again")
    func learntForeignRefreshToken() async throws {
        let world = try AccountWorld()
        try await world.importGrant()
        world.google.knowOwner(ofRefreshToken: "1//imported", .account(.init(id: "g-2", email: "stored@gmail.com")))
        world.google.know("ya29.jane")
        let answer = try await world.connect("ya29.jane", refreshToken: "1//imported")
        #expect(answer.data?["account_switch"] == .bool(true))
        #expect(try await world.refreshToken() == nil)
    }

    @Test("two users may connect one account with one refresh token")
    func sharedAccount() async throws {
        let world = try AccountWorld()
        world.google.know("ya29.jane")
        for user in ["42", "43"] {
            _ = try await world.connect("ya29.jane", refreshToken: "1//jane", user: user)
            #expect(try await world.refreshToken(ofUser: user) == "1//jane")
        }
    }

    @Test("an owner who is not known is learnt before anything is decided", arguments: ["g-1", "g-2"])
    func learning(owner: String) async throws {
        let world = try AccountWorld()
        try await world.importGrant()
        world.google.knowOwner(ofRefreshToken: "1//imported", .account(.init(id: owner, email: "stored@gmail.com")))
        world.google.know("ya29.jane")
        let answer = try await world.connect("ya29.jane")
        let isSwitch = owner != "g-1"
        #expect(answer.data?["account_switch"] == .bool(isSwitch))
        #expect(try await world.refreshToken() == (isSwitch ? nil : "1//imported"))
        #expect(world.google.refreshed == ["1//imported"])
        #expect(try await world.grant()?.owner.googleUserID == "g-1")
    }

    @Test("a dead grant without an owner is no switch, and its token is not kept")
    func deadUnknown() async throws {
        let world = try AccountWorld()
        try await world.importGrant()
        world.google.answerRefreshes { _ in .answer(.invalidGrant) }
        world.google.know("ya29.jane")
        let answer = try await world.connect("ya29.jane")
        #expect(answer.data?["account_switch"] == .bool(false))
        #expect(answer.data?["message"] == .string("Same Google account or first connection"))
        #expect(try await world.refreshToken() == nil)
        #expect(try await world.grant()?.state == .active)
    }

    @Test("an owner who cannot be learnt now leaves all as it was")
    func unreachable() async throws {
        let world = try AccountWorld()
        try await world.importGrant()
        world.google.answerRefreshes { _ in .answer(.noAnswer(code: "timeout")) }
        world.google.know("ya29.jane")
        let answer = try await world.connect("ya29.jane", refreshToken: "1//jane")
        #expect(answer.payPulse == "502 DEPENDENCY_FAILURE")
        #expect(try await world.refreshToken() == "1//imported")
        #expect(try await world.grant()?.owner == Grant.Owner())

        world.google.answerRefreshes { _ in .grant }
        world.google.knowOwner(ofRefreshToken: "1//imported", .failure(.unavailable(code: "http_503")))
        world.time.advance(by: .seconds(3600))
        #expect(try await world.connect("ya29.jane", refreshToken: "1//jane").payPulse == "502 DEPENDENCY_FAILURE")
        #expect(try await world.refreshToken() == "1//imported")
    }

    // MARK: Refusals

    /// A body, and what comes of it.
    struct BadBody: CustomTestStringConvertible, Sendable {
        var body: String
        var expected: String
        var names: String = ""
        var testDescription: String { body }
    }

    @Test(
        "bad bodies are told where they are bad, and nothing is stored",
        arguments: [
            BadBody(body: "", expected: "400 INVALID_JSON"),
            BadBody(body: "{", expected: "400 INVALID_JSON"),
            BadBody(body: "[]", expected: "400 INVALID_JSON"),
            BadBody(body: "{}", expected: "400 MISSING_FIELDS", names: "access_token"),
            BadBody(body: #"{"access_token":null}"#, expected: "400 MISSING_FIELDS", names: "access_token"),
            BadBody(body: #"{"access_token":""}"#, expected: "400 MISSING_FIELDS", names: "access_token"),
            BadBody(body: #"{"access_token":1}"#, expected: "400 INVALID_JSON", names: "access_token"),
            BadBody(body: #"{"access_token":"a\r\nb: c"}"#, expected: "400 INVALID_CREDENTIALS"),
            BadBody(
                body: #"{"access_token":"ya29.jane","refresh_token":[]}"#,
                expected: "400 INVALID_JSON",
                names: "refresh_token"
            ),
            BadBody(
                body: #"{"access_token":"ya29.jane","refresh_token":"a b"}"#,
                expected: "400 INVALID_JSON",
                names: "refresh_token"
            ),
            BadBody(
                body: #"{"access_token":"ya29.jane","expires_in":"soon"}"#,
                expected: "400 INVALID_JSON",
                names: "expires_in"
            ),
            BadBody(
                body: #"{"access_token":"ya29.jane","expires_in":-1}"#,
                expected: "400 INVALID_JSON",
                names: "expires_in"
            ),
            BadBody(
                body: #"{"access_token":"ya29.jane","expires_in":true}"#,
                expected: "400 INVALID_JSON",
                names: "expires_in"
            ),
            BadBody(
                body: #"{"access_token":"ya29.jane","refresh_token_expires_in":{}}"#,
                expected: "400 INVALID_JSON",
                names: "refresh_token_expires_in"
            ),
            BadBody(body: #"{"access_token":"ya29.jane","scope":7}"#, expected: "400 INVALID_JSON", names: "scope"),
            BadBody(body: #"{"access_token":"ya29.jane","scope":[7]}"#, expected: "400 INVALID_JSON", names: "scope"),
            BadBody(body: #"{"access_token":"ya29.jane","email":7}"#, expected: "400 INVALID_JSON", names: "email"),
        ]
    )
    func badBodies(_ example: BadBody) async throws {
        let world = try AccountWorld()
        world.google.know("ya29.jane")
        let answer = try await world.ask("POST", Self.path, token: world.token(ofUser: "42"), json: example.body)
        #expect(answer.payPulse == example.expected)
        #expect(answer["error"]?["message"]?.string?.contains(example.names) ?? false || example.names.isEmpty)
        #expect(world.google.lookups == 0)
        #expect(try await world.store.user("42") == nil)
    }

    @Test("no body at all, and no word about one", arguments: [path, "/api/auth/mobile/google", "/api/auth/refresh"])
    func undeclared(path: String) async throws {
        let world = try AccountWorld()
        let token = world.token(ofUser: "42")
        #expect(try await world.ask("POST", path, token: token, declaringLength: false).status == 411)
    }

    @Test("a body of another kind", arguments: ["text/plain", "multipart/form-data; boundary=x", ""])
    func otherMediaType(_ type: String) async throws {
        let world = try AccountWorld()
        let answer = try await world.ask(
            "POST",
            Self.path,
            token: world.token(ofUser: "42"),
            headers: type.isEmpty ? [] : [("Content-Type", type)]
        )
        #expect(answer.payPulse == "415 INVALID_JSON")
    }

    @Test("a repeated field of a form is one too many")
    func repeatedField() async throws {
        let world = try AccountWorld()
        let answer = try await world.ask(
            "POST",
            Self.path,
            token: world.token(ofUser: "42"),
            form: "access_token=ya29.jane&access_token=ya29.john"
        )
        #expect(answer.payPulse == "400 INVALID_JSON")
    }

    /// What Google says of a token, and what comes of it in both families.
    struct Doubt: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var userInfo: FakeGoogle.Saying
        var tokenInfo: FakeGoogle.Saying
        var isRefusal: Bool

        init(_ name: String, _ userInfo: FakeGoogle.Saying, _ tokenInfo: FakeGoogle.Saying, isRefusal: Bool = true) {
            testDescription = name
            self.userInfo = userInfo
            self.tokenInfo = tokenInfo
            self.isRefusal = isRefusal
        }

        init(_ name: String, _ account: FakeGoogle.Account) {
            self.init(name, .account(account), .account(account))
        }
    }

    @Test(
        "a token that may not be believed stores nothing",
        .timeLimit(.minutes(10)),
        arguments: [
            Doubt("another app's audience", .init(audience: "789-theirs.apps.googleusercontent.com")),
            Doubt("another app's party", .init(authorizedParty: "789-theirs.apps.googleusercontent.com")),
            Doubt("an unverified address", .init(emailIsVerified: false)),
            Doubt("no address", .init(email: nil)),
            Doubt("another subject", .init(subject: "g-2")),
            Doubt("no life left", .init(lifetime: 0)),
            Doubt("refused by userinfo", .failure(.refused), .account(.init())),
            Doubt("refused by tokeninfo", .account(.init()), .failure(.refused)),
            Doubt("refused by one, the other silent", .failure(.refused), .nothing),
            Doubt("userinfo is away", .failure(.unavailable(code: "http_503")), .account(.init()), isRefusal: false),
            Doubt("tokeninfo is away", .account(.init()), .failure(.unavailable(code: "dns")), isRefusal: false),
        ]
    )
    func doubts(_ doubt: Doubt) async throws {
        let world = try AccountWorld()
        world.google.say("ya29.jane", userInfo: doubt.userInfo, tokenInfo: doubt.tokenInfo)
        let answer = try await world.connect("ya29.jane", refreshToken: "1//jane")
        #expect(answer.payPulse == (doubt.isRefusal ? "400 INVALID_CREDENTIALS" : "502 DEPENDENCY_FAILURE"))
        #expect(try await world.grant() == nil)
        #expect(try await world.store.user("42") == nil)

        let signIn = try await world.ask("POST", "/api/auth/mobile/google", json: #"{"access_token":"ya29.jane"}"#)
        #expect(
            signIn.comprehension
                == (doubt.isRefusal ? "400 Invalid Google access token" : "502 Google cannot be reached; try again")
        )
    }

    @Test("Google is silent beyond the deadline", .timeLimit(.minutes(10)))
    func deadline() async throws {
        let world = try AccountWorld(googleDeadline: .milliseconds(1))
        world.google.say("ya29.jane", userInfo: .nothing, tokenInfo: .nothing)
        #expect(try await world.connect("ya29.jane").payPulse == "502 DEPENDENCY_FAILURE")
        #expect(world.google.lookups == 2)
    }

    @Test("an address that signs in too often waits")
    func budget() async throws {
        let world = try AccountWorld(signInsPerMinute: 2)
        world.google.know("ya29.jane")
        let signIn = #"{"access_token":"ya29.jane"}"#
        #expect(try await world.connect("ya29.jane").status == 201)
        #expect(try await world.ask("POST", "/api/auth/mobile/google", json: signIn).status == 200)
        let refused = try await world.connect("ya29.jane")
        #expect(refused.payPulse == "429 DEPENDENCY_FAILURE")
        #expect(refused.header("Retry-After").flatMap { Int($0) } ?? 0 > 0)
        let other = try await world.ask("POST", "/api/auth/mobile/google", json: signIn)
        #expect(other.comprehension == "429 Too many requests; try again later")
        #expect(other.header("Retry-After") != nil)
        // Another address, and the routes that cost Google nothing, are not meant.
        #expect(try await world.ask("POST", "/api/auth/mobile/google", json: signIn, from: "192.0.2.2").status == 200)
        #expect(try await world.ask("GET", "/v1/user/me", token: world.token(ofUser: "42")).status == 200)
        world.time.advance(by: .seconds(60))
        #expect(try await world.connect("ya29.jane").status == 201)
    }

    @Test("an address that fails too often waits, and sign-ins that succeed do not count")
    func failures() async throws {
        let world = try AccountWorld(failuresPerMinute: 2)
        world.google.know("ya29.jane")
        let signIn = { (token: String) in
            try await world.ask("POST", "/api/auth/mobile/google", json: #"{"access_token":"\#(token)"}"#).status
        }
        for _ in 1...20 { #expect(try await signIn("ya29.jane") == 200) }
        #expect(try await signIn("ya29.guessed") == 400)
        for _ in 1...20 { #expect(try await world.connect("ya29.jane").status == 201) }
        #expect(try await world.connect("ya29.guessed").status == 400)
        #expect(try await signIn("ya29.jane") == 429)
        #expect(try await world.connect("ya29.jane").status == 429)
        world.time.advance(by: .seconds(60))
        #expect(try await signIn("ya29.jane") == 200)
    }

    @Test("an outage of Google counts as no failure of the address")
    func outage() async throws {
        let world = try AccountWorld(failuresPerMinute: 1)
        world.google.know("ya29.jane")
        world.google.say("ya29.away", userInfo: .failure(.unavailable(code: "http_503")), tokenInfo: .nothing)
        for _ in 1...5 { #expect(try await world.connect("ya29.away").status == 502) }
        #expect(try await world.connect("ya29.jane").status == 201)
    }

    @Test("a refresh token of another account is found out at its first refresh, wiped and never vended")
    func foreignRefreshToken() async throws {
        let world = try AccountWorld()
        world.google.know("ya29.jane")
        world.google.knowOwner(ofRefreshToken: "1//other", .account(.init(id: "g-2", email: "other@x.org")))
        #expect(try await world.connect("ya29.jane", refreshToken: "1//other").status == 201)
        await #expect(throws: VendFailure.self) {
            try await world.engine.freshToken(of: "42", minimumLife: .seconds(86_400))
        }
        let grant = try #require(try await world.grant())
        #expect(grant.state == .reauthRequired && grant.reason == .accountMismatch)
        #expect(grant.refreshToken == nil && grant.accessToken == nil)
        let profile = try await world.ask("GET", "/v1/user/me", token: world.token(ofUser: "42"))
        #expect(profile.data?["gmail_account_connected"] == .bool(false))
        // With a refresh token of the right account the user is connected again.
        #expect(try await world.connect("ya29.jane", refreshToken: "1//jane").status == 201)
        let token = try await world.engine.freshToken(of: "42", minimumLife: .seconds(3000))
        #expect(token.accessToken.reveal().hasPrefix("fresh-"))
        #expect(try await world.grant()?.state == .active)
    }

    @Test("while the account of a new refresh token cannot be looked up, the app's own token is vended")
    func uncheckedRefreshToken() async throws {
        let world = try AccountWorld()
        world.google.know("ya29.jane")
        world.google.knowOwner(ofRefreshToken: "1//jane", .failure(.unavailable(code: "http_503")))
        #expect(try await world.connect("ya29.jane", refreshToken: "1//jane").status == 201)
        let token = try await world.engine.freshToken(of: "42", minimumLife: .seconds(86_400))
        #expect(token.accessToken == Secret("ya29.jane") && token.warning == "account_unchecked")
        let grant = try #require(try await world.grant())
        #expect(grant.state == .retrying && grant.reason == .accountUnchecked)
        #expect(try await world.accessToken() == "ya29.jane")
        #expect(try await world.refreshToken() == "1//jane")
    }
}

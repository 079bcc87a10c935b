import GoogleOAuth
import Storage
import TestSupport
import Testing

@testable import Base
@testable import Routes

@Suite("Refused tokens of the app")
struct AccountConnectorRefusalTests {
    private static let path = "/v1/auth/gmail-tokens"

    /// A body and the expected response.
    struct BadBody: CustomTestStringConvertible, Sendable {
        var body: String
        var expected: String
        var names: String = ""
        var testDescription: String { body }
    }

    @Test(
        "invalid bodies are refused with the invalid field, and nothing is stored",
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
            BadBody(
                body: #"{"access_token":"ya29.jane","email":"\#(String(repeating: "é", count: 256))"}"#,
                expected: "400 INVALID_JSON",
                names: "email"
            ),
        ]
    )
    func badBodies(_ example: BadBody) async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let response = try await fixture.send("POST", Self.path, token: fixture.token(ofUser: "42"), json: example.body)
        #expect(response.statusAndCode == example.expected)
        #expect(response["error"]?["message"]?.string?.contains(example.names) ?? false || example.names.isEmpty)
        #expect(fixture.google.lookups == 0)
        #expect(try await fixture.store.user("42") == nil)
    }

    @Test(
        "a request without a body and without its declaration",
        arguments: [path, "/api/auth/mobile/google", "/api/auth/refresh"]
    )
    func undeclared(path: String) async throws {
        let fixture = try AccountFixture()
        let token = fixture.token(ofUser: "42")
        #expect(try await fixture.send("POST", path, token: token, declaringLength: false).status == 411)
    }

    @Test("a body of another media type", arguments: ["text/plain", "multipart/form-data; boundary=x", ""])
    func otherMediaType(_ type: String) async throws {
        let fixture = try AccountFixture()
        let response = try await fixture.send(
            "POST",
            Self.path,
            token: fixture.token(ofUser: "42"),
            headers: type.isEmpty ? [] : [("Content-Type", type)]
        )
        #expect(response.statusAndCode == "415 INVALID_JSON")
    }

    @Test("a repeated field of a form is refused")
    func repeatedField() async throws {
        let fixture = try AccountFixture()
        let response = try await fixture.send(
            "POST",
            Self.path,
            token: fixture.token(ofUser: "42"),
            form: "access_token=ya29.jane&access_token=ya29.john"
        )
        #expect(response.statusAndCode == "400 INVALID_JSON")
    }

    /// The look-ups of a token at Google, and the outcome in both families.
    struct UntrustedToken: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var userInfo: FakeGoogle.LookupResult
        var tokenInfo: FakeGoogle.LookupResult
        var isRefusal: Bool

        init(
            _ name: String,
            _ userInfo: FakeGoogle.LookupResult,
            _ tokenInfo: FakeGoogle.LookupResult,
            isRefusal: Bool = true
        ) {
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
        "an untrusted token is refused, and nothing is stored",
        .timeLimit(.minutes(10)),
        arguments: [
            UntrustedToken("another app's audience", .init(audience: "789-another-app.apps.googleusercontent.com")),
            UntrustedToken("another app's party", .init(authorizedParty: "789-another-app.apps.googleusercontent.com")),
            UntrustedToken("an unverified address", .init(emailIsVerified: false)),
            UntrustedToken("no address", .init(email: nil)),
            UntrustedToken("another subject", .init(subject: "g-2")),
            UntrustedToken("no life left", .init(lifetime: 0)),
            UntrustedToken("refused by userinfo", .failure(.refused), .account(.init())),
            UntrustedToken("refused by tokeninfo", .account(.init()), .failure(.refused)),
            UntrustedToken("refused by one, the other without an answer", .failure(.refused), .noAnswer),
            UntrustedToken(
                "userinfo is unavailable",
                .failure(.unavailable(code: "http_503")),
                .account(.init()),
                isRefusal: false
            ),
            UntrustedToken(
                "tokeninfo is unavailable",
                .account(.init()),
                .failure(.unavailable(code: "dns")),
                isRefusal: false
            ),
        ]
    )
    func untrustedToken(_ example: UntrustedToken) async throws {
        let fixture = try AccountFixture()
        fixture.google.setLookups("ya29.jane", userInfo: example.userInfo, tokenInfo: example.tokenInfo)
        let response = try await fixture.connect("ya29.jane", refreshToken: "1//jane")
        #expect(response.statusAndCode == (example.isRefusal ? "400 INVALID_CREDENTIALS" : "502 DEPENDENCY_FAILURE"))
        #expect(try await fixture.grant() == nil)
        #expect(try await fixture.store.user("42") == nil)

        let signIn = try await fixture.send("POST", "/api/auth/mobile/google", json: #"{"access_token":"ya29.jane"}"#)
        #expect(
            signIn.statusAndDetail
                == (example.isRefusal ? "400 Invalid Google access token" : "502 Google cannot be reached; try again")
        )
    }

    @Test("without an answer of Google the request fails at the deadline", .timeLimit(.minutes(10)))
    func deadline() async throws {
        let fixture = try AccountFixture()
        fixture.google.setLookups("ya29.jane", userInfo: .noAnswer, tokenInfo: .noAnswer)
        async let response = fixture.connect("ya29.jane")
        await fixture.time.sleepers(atLeast: 1)
        fixture.time.advance(by: AccountFixture.googleDeadline)
        #expect(try await response.statusAndCode == "502 DEPENDENCY_FAILURE")
        #expect(fixture.google.lookups == 2)
    }

    @Test("an address with too many sign-ins must wait")
    func budget() async throws {
        let fixture = try AccountFixture(signInsPerMinute: 2)
        fixture.google.setAccount("ya29.jane")
        let signIn = #"{"access_token":"ya29.jane"}"#
        #expect(try await fixture.connect("ya29.jane").status == 201)
        #expect(try await fixture.send("POST", "/api/auth/mobile/google", json: signIn).status == 200)
        let refused = try await fixture.connect("ya29.jane")
        #expect(refused.statusAndCode == "429 DEPENDENCY_FAILURE")
        #expect(refused.header("Retry-After").flatMap { Int($0) } ?? 0 > 0)
        let other = try await fixture.send("POST", "/api/auth/mobile/google", json: signIn)
        #expect(other.statusAndDetail == "429 Too many requests; try again later")
        #expect(other.header("Retry-After") != nil)
        // The limit does not apply to another address, or to routes that do not call Google.
        #expect(
            try await fixture.send("POST", "/api/auth/mobile/google", json: signIn, from: "192.0.2.2").status == 200
        )
        #expect(try await fixture.send("GET", "/v1/user/me", token: fixture.token(ofUser: "42")).status == 200)
        fixture.time.advance(by: .seconds(60))
        #expect(try await fixture.connect("ya29.jane").status == 201)
    }

    @Test("an address with too many failures must wait, and successful sign-ins do not count")
    func failures() async throws {
        let fixture = try AccountFixture(failuresPerMinute: 2)
        fixture.google.setAccount("ya29.jane")
        let signIn = { (token: String) in
            try await fixture.send("POST", "/api/auth/mobile/google", json: #"{"access_token":"\#(token)"}"#).status
        }
        for _ in 1...20 { #expect(try await signIn("ya29.jane") == 200) }
        #expect(try await signIn("ya29.guessed") == 400)
        for _ in 1...20 { #expect(try await fixture.connect("ya29.jane").status == 201) }
        #expect(try await fixture.connect("ya29.guessed").status == 400)
        #expect(try await signIn("ya29.jane") == 429)
        #expect(try await fixture.connect("ya29.jane").status == 429)
        fixture.time.advance(by: .seconds(60))
        #expect(try await signIn("ya29.jane") == 200)
    }

    @Test("an outage of Google does not count as a failure of the address")
    func outage() async throws {
        let fixture = try AccountFixture(failuresPerMinute: 1)
        fixture.google.setAccount("ya29.jane")
        fixture.google.setLookups(
            "ya29.unavailable",
            userInfo: .failure(.unavailable(code: "http_503")),
            tokenInfo: .noAnswer
        )
        for _ in 1...5 { #expect(try await fixture.connect("ya29.unavailable").status == 502) }
        #expect(try await fixture.connect("ya29.jane").status == 201)
    }
}

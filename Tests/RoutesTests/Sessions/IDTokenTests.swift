import TestSupport
import Testing

@testable import Base
@testable import GoogleOAuth
@testable import Routes
@testable import Storage

@Suite("A sign-in with Google's ID token")
struct IDTokenTests {
    private static let path = "/api/auth/mobile/google"
    private static let refusal = "400 Invalid Google ID token"

    private let keys: LoginKeys
    private let fixture: AccountFixture

    init() throws {
        keys = try LoginKeys()
        fixture = try AccountFixture(googleKeys: keys.source)
    }

    /// Returns a token with Google's claims, of which some are replaced.
    private func token(key keyID: String = "k1", _ changes: [String: JSONValue?] = [:]) throws -> String {
        let now = fixture.time.now.milliseconds / 1000
        var claims: [String: JSONValue] = [
            "iss": .string("https://accounts.google.com"), "aud": .string(FakeGoogle.clientID), "sub": .string("g-1"),
            "azp": .string(FakeGoogle.clientID), "email": .string("jane@gmail.com"), "email_verified": .bool(true),
            "name": .string("Jane Smith"), "iat": .number("\(now)"), "exp": .number("\(now + 3600)"),
            "nonce": .string("n-1"),
        ]
        for (name, value) in changes { claims[name] = value }
        return try keys.token(keyID: keyID) { line in
            for (name, value) in claims {
                switch value {
                case .string(let text): line.field(name, text)
                case .bool(let flag): line.field(name, flag)
                case .number(let text): line.field(name, Int64(text) ?? 0)
                default: line.null(name)
                }
            }
        }
    }

    private func signIn(_ token: String, nonce: String? = nil) async throws -> ParsedResponse {
        let nonce = nonce.map { #","nonce":"\#($0)""# } ?? ""
        return try await fixture.send("POST", Self.path, json: #"{"id_token":"\#(token)"\#(nonce)}"#)
    }

    @Test("begins a session of the account's owner, without asking Google")
    func accepted() async throws {
        let response = try await signIn(token(), nonce: "n-1")
        #expect(response.status == 200)
        let access = try #require(response["access_token"]?.string)
        let user = try await fixture.send("GET", "/api/auth/me", token: access)
        #expect(user["email"]?.string == "jane@gmail.com" && user["name"]?.string == "Jane Smith")
        #expect(fixture.google.lookups == 0)
        fixture.google.setAccount("ya29.jane")
        let other = try await fixture.send("GET", "/api/auth/me", token: fixture.signIn().access)
        #expect(other["id"]?.string == user["id"]?.string)
    }

    @Test("is accepted once, however it is signed")
    func repeated() async throws {
        let once = try token()
        #expect(try await signIn(once).status == 200)
        #expect(try await signIn(once).statusAndDetail == Self.refusal)
        fixture.time.advance(by: .seconds(3599))
        while try await fixture.store.removeExpired(at: fixture.time.now).mayHaveMore {}
        #expect(try await signIn(once).statusAndDetail == Self.refusal)
        // The record is removed an hour after the token's end, when its expiry refuses it.
        let count = { [fixture] in try await fixture.store.removeExpired(at: fixture.time.now).identifiers }
        #expect(try await count() == 0)
        fixture.time.advance(by: .seconds(3602))
        #expect(try await count() == 1)
        #expect(try await signIn(once).statusAndDetail == Self.refusal)
    }

    @Test(
        "is refused unless it is for the app, in time, of Google and of a verified address",
        arguments: [
            ["iss": .string("https://evil.example")], ["iss": nil], ["aud": .string("other"), "azp": .string("other")],
            ["azp": .string("other")], ["aud": .string("other")], ["aud": nil], ["exp": .number("1000")], ["exp": nil],
            ["iat": .number("9999999999")], ["email_verified": .bool(false)], ["email_verified": nil], ["email": nil],
            ["sub": nil],
        ] as [[String: JSONValue?]]
    )
    func refused(changes: [String: JSONValue?]) async throws {
        #expect(try await signIn(token(changes)).statusAndDetail == Self.refusal)
    }

    @Test("of the older issuer, without azp, or for the server's client is accepted")
    func otherForms() async throws {
        #expect(try await signIn(token(["iss": .string("accounts.google.com")])).status == 200)
        #expect(try await signIn(token(["azp": nil, "jti": .string("2")])).status == 200)
        fixture.codes.configure()
        let server = try #require(fixture.exchanges.client()?.id)
        #expect(try await signIn(token(["aud": .string(server)])).status == 200)
    }

    @Test("has the nonce of the request, if that has one")
    func nonce() async throws {
        #expect(try await signIn(token(), nonce: "n-2").statusAndDetail == Self.refusal)
        #expect(try await signIn(token(["nonce": nil]), nonce: "n-1").statusAndDetail == Self.refusal)
        #expect(try await signIn(token()).status == 200)
    }

    @Test("is missing if it is null or empty, and then Google's access token is used", arguments: ["null", #""""#])
    func missing(idToken: String) async throws {
        fixture.google.setAccount("ya29.jane")
        let body = #"{"access_token":"ya29.jane","id_token":\#(idToken),"nonce":null}"#
        #expect(try await fixture.send("POST", Self.path, json: body).status == 200)
    }

    @Test(
        "is refused beside members of another form, as the description says",
        arguments: [#""access_token":7"#, #""access_token":"é""#, #""nonce":7"#]
    )
    func otherMembers(members: String) async throws {
        let body = try #"{"id_token":"\#(token())",\#(members)}"#
        #expect(try await fixture.send("POST", Self.path, json: body).status == 400)
    }

    @Test("is refused if Google's key has not signed it, and cannot be judged without Google's keys")
    func keysOfGoogle() async throws {
        keys.publish(["k1": keys.second])
        #expect(try await signIn(token()).statusAndDetail == Self.refusal)
        #expect(try await signIn(token(key: "k9")).status == 502)
        fixture.time.advance(by: .seconds(60))
        #expect(try await signIn(token(key: "k9")).statusAndDetail == Self.refusal)
        for malformed in ["a.b.c", "e30.e30.AAAA"] {
            #expect(try await signIn(malformed).statusAndDetail == Self.refusal)
        }
        let other = try AccountFixture(googleKeys: .file { throw CancellationError() })
        let response = try await other.send("POST", Self.path, json: #"{"id_token":"\#(token())"}"#)
        #expect(response.status == 502)
    }
}

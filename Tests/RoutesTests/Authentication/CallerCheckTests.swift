import Crypto
import HTTPServer
import TestSupport
import Testing

@testable import Base
@testable import Routes
@testable import Storage

@Suite("Authentication")
struct CallerCheckTests {
    private static let path = "/v1/user/me"

    /// Headers of a request, and the expected response of the profile route.
    struct Case: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var expected: String
        var headers: @Sendable (AccountFixture) throws -> [ServerRequest.Field]

        init(
            _ name: String,
            _ expected: String,
            _ headers: @escaping @Sendable (AccountFixture) throws -> [ServerRequest.Field]
        ) {
            testDescription = name
            self.expected = expected
            self.headers = headers
        }

        init(_ name: String, _ expected: String, claims: @escaping @Sendable (inout JSONLine) -> Void) {
            self.init(name, expected) { [("Authorization", "Bearer \($0.sign(claims))")] }
        }
    }

    @Test(
        "each form of credentials",
        arguments: [
            Case("no header", "401 INVALID_CREDENTIALS") { _ in [] },
            Case("an empty header", "401 INVALID_CREDENTIALS") { _ in [("Authorization", "")] },
            Case("a scheme without a token", "401 INVALID_CREDENTIALS") { _ in [("Authorization", "Bearer ")] },
            Case("another scheme", "401 INVALID_CREDENTIALS") { _ in [("Authorization", "Basic YTpi")] },
            Case("a token of Google's", "401 INVALID_TOKEN") { _ in [("Authorization", "Bearer ya29.jane")] },
            Case("two headers", "401 INVALID_TOKEN") { fixture in
                [1, 2].map { _ in ("Authorization", "Bearer \(fixture.token(ofUser: "42"))") }
            },
            Case("two tokens in one header", "401 INVALID_TOKEN") { fixture in
                [("Authorization", "Bearer \(fixture.token(ofUser: "42")) \(fixture.token(ofUser: "42"))")]
            },
            Case("two tokens with a comma between", "401 INVALID_TOKEN") { fixture in
                [("Authorization", "Bearer \(fixture.token(ofUser: "42")),Bearer")]
            },
            Case("the scheme in another case", "200") { fixture in
                [("authorization", "bEARER \(fixture.token(ofUser: "42"))")]
            },
            Case("signed by the secret that is being retired", "200") { fixture in
                let old = try TokenSigner(secrets: [AccountFixture.oldSecret])
                return [("Authorization", "Bearer \(fixture.sign(by: old) { $0.field("sub", "42") })")]
            },
            Case("signed with another secret", "401 INVALID_TOKEN") { fixture in
                let foreignSigner = try TokenSigner(secrets: [Secret("another issuer's secret of thirty-two bytes")])
                return [("Authorization", "Bearer \(fixture.sign(by: foreignSigner) { $0.field("sub", "42") })")]
            },
            Case("without a signature", "401 INVALID_TOKEN") { fixture in
                let parts = fixture.token(ofUser: "42").split(separator: ".")
                let header = Base64URL.encode(Array(#"{"alg":"none","typ":"JWT"}"#.utf8))
                return [("Authorization", "Bearer \(header).\(parts[1]).")]
            },
            Case("expired", "401 TOKEN_EXPIRED") { fixture in
                [("Authorization", "Bearer \(fixture.sign(lifetime: .seconds(-1)) { $0.field("sub", "42") })")]
            },
            Case("expired and forged", "401 INVALID_TOKEN") { fixture in
                let token = fixture.sign(lifetime: .seconds(-1)) { $0.field("sub", "42") }
                return [("Authorization", "Bearer \(token.dropLast(4))AAAA")]
            },
            Case("without an expiry", "401 INVALID_TOKEN") { fixture in
                var claims = JSONLine()
                claims.field("sub", "42")
                return [("Authorization", "Bearer \(fixture.signer.sign(claims).reveal())")]
            },
            Case("the user in sub", "200") { $0.field("sub", "42") },
            Case("the user in user_id", "200") { $0.field("user_id", "42") },
            Case("the user as a number", "401 INVALID_TOKEN") { $0.field("user_id", 42) },
            Case("both, which agree", "200") { claims in
                claims.field("sub", "42")
                claims.field("user_id", "42")
            },
            Case("both, which differ", "401 INVALID_TOKEN") { claims in
                claims.field("sub", "42")
                claims.field("user_id", "43")
            },
            Case("both, which differ only in their Unicode encoding", "401 INVALID_TOKEN") { claims in
                claims.field("sub", "caf\u{e9}")
                claims.field("user_id", "cafe\u{301}")
            },
            Case("no user", "401 INVALID_TOKEN") { $0.field("email", "jane@example.com") },
            Case("an empty user", "401 INVALID_TOKEN") { $0.field("sub", "") },
            Case("a user with a line break", "401 INVALID_TOKEN") { $0.field("sub", "4\n2") },
            Case("a user of 255 bytes", "200") { $0.field("sub", String(repeating: "u", count: 255)) },
            Case("a user of 256 bytes", "401 INVALID_TOKEN") { $0.field("sub", String(repeating: "u", count: 256)) },
            Case("a user that is a list", "401 INVALID_TOKEN") { $0.array("sub") { $0.element("42") } },
            Case("a fraction as the user", "401 INVALID_TOKEN") { $0.field("sub", 4.2) },
            Case("an access token", "200") { claims in
                claims.field("sub", "42")
                claims.field("type", "access")
            },
            Case("a refresh token", "401 INVALID_TOKEN") { claims in
                claims.field("sub", "42")
                claims.field("type", "refresh")
            },
            Case("a token whose type is null", "401 INVALID_TOKEN") { claims in
                claims.field("sub", "42")
                claims.null("type")
            },
            Case("an unknown session", "401 INVALID_TOKEN") { claims in
                claims.field("sub", "42")
                claims.field("sid", "000102030405060708090a0b0c0d0e0f")
            },
            Case("a session with an empty id", "401 INVALID_TOKEN") { claims in
                claims.field("sub", "42")
                claims.field("sid", "")
            },
            Case("an inactive user", "401 INVALID_CREDENTIALS") { $0.field("sub", "inactive") },
        ]
    )
    func credentials(_ example: Case) async throws {
        let fixture = try AccountFixture()
        let inactive = User(id: "inactive", createdAt: fixture.time.now, isActive: false)
        try await fixture.store.transact { try $0.insert(inactive) }
        let response = try await fixture.send("GET", Self.path, headers: try example.headers(fixture))
        #expect(response.statusAndCode == example.expected)
        #expect((response.header("WWW-Authenticate") == "Bearer") == (response.status == 401))
        #expect(response.header("Cache-Control") == "no-store")
        #expect(response.header("X-Content-Type-Options") == "nosniff")

        let other = try await fixture.send("GET", "/api/auth/me", headers: try example.headers(fixture))
        let isAccepted = example.expected == "200"
        #expect(other.statusAndDetail == (isAccepted ? "200" : "401 Could not validate credentials"))
        #expect((other.header("WWW-Authenticate") == "Bearer") == !isAccepted)
    }

    @Test("an unknown user is created from the claims")
    func creation() async throws {
        let fixture = try AccountFixture()
        let response = try await fixture.send(
            "GET",
            Self.path,
            token: fixture.token(ofUser: "42", email: "jane@example.com")
        )
        #expect(response.status == 200)
        let user = try #require(try await fixture.store.user("42"))
        #expect(user.email == "jane@example.com")
        #expect(user.name == nil)
        #expect(user.createdAt == fixture.time.now)
    }

    @Test(
        "only an address that the backend calls verified is linked to the Google account that signs in with it",
        arguments: [(nil, false), (true, true), (false, false)] as [(Bool?, Bool)]
    )
    func unverifiedAddress(claim: Bool?, isLinked: Bool) async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let token = fixture.sign { claims in
            claims.field("sub", "42")
            claims.field("email", "jane@gmail.com")
            if let claim { claims.field("email_verified", claim) }
        }
        _ = try await fixture.send("GET", Self.path, token: token)
        let tokens = try await fixture.signIn()
        let response = try await fixture.send("GET", "/api/auth/me", token: tokens.access)
        #expect((response["id"] == .string("42")) == isLinked)
    }

    @Test("fields that an import did not know are taken from the claims")
    func completion() async throws {
        let fixture = try AccountFixture()
        try await fixture.importGrant()
        let response = try await fixture.send(
            "GET",
            Self.path,
            token: fixture.token(ofUser: "42", email: "jane@example.com")
        )
        #expect(response.data?["email"] == .string("jane@example.com"))
        let other = try await fixture.send(
            "GET",
            Self.path,
            token: fixture.token(ofUser: "42", email: "other@example.com")
        )
        #expect(other.data?["email"] == .string("jane@example.com"))
    }

    @Test("a session of another user is refused")
    func foreignSession() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let tokens = try await fixture.signIn()
        let claims = try fixture.signer.claims(of: tokens.access, at: fixture.time.now)
        let sid = try #require(claims["sid"]?.string)
        let forged = fixture.sign { line in
            line.field("sub", "42")
            line.field("sid", sid)
        }
        #expect(try await fixture.send("GET", Self.path, token: forged).statusAndCode == "401 INVALID_TOKEN")
        #expect(try await fixture.store.user("42") == nil)
        // A session that was never stored does not admit a known user either.
        #expect(try await fixture.send("GET", Self.path, token: fixture.token(ofUser: "42")).status == 200)
        #expect(try await fixture.send("GET", Self.path, token: forged).statusAndCode == "401 INVALID_TOKEN")
    }
}

import Crypto
import Storage
import TestSupport
import Testing

@testable import Base

@Suite("Requests that could cost a write", .timeLimit(.minutes(10)))
struct WriteAvoidanceTests {
    @Test("A refused or repeated refresh token does not need a transaction")
    func refresh() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let first = try await fixture.signIn()
        let claims = try fixture.signer.claims(of: first.refresh, at: fixture.time.now)
        let (user, session) = (try #require(claims["sub"]?.string), try #require(claims["sid"]?.string))
        func token(of user: String, session: String) -> String {
            fixture.sign {
                $0.field("sub", user)
                $0.field("type", "refresh")
                $0.field("sid", session)
            }
        }
        let second = try #require(try await fixture.refresh(first.refresh)["refresh_token"]?.string)
        // The first repetition is recorded: a late response may restore the current token.
        #expect(try await fixture.refresh(first.refresh)["refresh_token"]?.string == second)
        let before = fixture.store.transactions
        for fake in [
            "nonsense", first.access, token(of: user, session: "000102030405060708090a0b0c0d0e0f"),
            token(of: "another user", session: session),
        ] {
            #expect(try await fixture.refresh(fake).status == 401)
        }
        #expect(try await fixture.refresh(first.refresh)["refresh_token"]?.string == second)
        #expect(fixture.store.transactions == before)
        #expect(try await fixture.refresh(second).status == 200)
        #expect(fixture.store.transactions == before + 1)
    }

    @Test("A session that has expired or ended is refused without a transaction")
    func endedSession() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let tokens = try await fixture.signIn()
        #expect(try await fixture.send("POST", "/api/auth/logout", token: tokens.access).status == 200)
        let before = fixture.store.transactions
        #expect(try await fixture.refresh(tokens.refresh).status == 401)
        for token in [tokens.access, tokens.refresh] {
            #expect(try await fixture.send("POST", "/api/auth/logout", token: token).status == 200)
        }
        #expect(fixture.store.transactions == before)
    }

    @Test("A disconnection with nothing left to end does not need a transaction")
    func disconnect() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        #expect(try await fixture.connect("ya29.jane", refreshToken: "1//jane").status == 201)
        let user = fixture.token(ofUser: "42")
        #expect(try await fixture.send("DELETE", "/v1/auth/gmail-tokens", token: user).status == 200)
        let stranger = fixture.token(ofUser: "never connected")
        // It records that an import must not connect the user.
        #expect(try await fixture.send("DELETE", "/v1/auth/gmail-tokens", token: stranger).status == 200)
        let before = fixture.store.transactions
        for token in [user, stranger] {
            let response = try await fixture.send("DELETE", "/v1/auth/gmail-tokens", token: token)
            #expect(response.status == 200 && response["data"]?["gmail_account_connected"] == .bool(false))
        }
        #expect(fixture.store.transactions == before)
    }

    @Test(
        "An address that stores too many users must wait, but not for stored ones",
        arguments: ["/v1/user", "/api/auth"]
    )
    func newUsers(path: String) async throws {
        let fixture = try AccountFixture(writesPerMinute: 2)
        for (user, status) in [("1", 200), ("1", 200), ("2", 200), ("3", 429), ("1", 200)] {
            let response = try await fixture.send("GET", "\(path)/me", token: fixture.token(ofUser: user))
            #expect(response.status == status, "\(user)")
        }
        #expect(try await fixture.store.user("3") == nil)
    }

    @Test(
        "An address with too many writes must wait, before its token is read",
        arguments: [
            ("POST", "/api/auth/refresh"), ("POST", "/api/auth/logout"), ("DELETE", "/v1/auth/gmail-tokens"),
            ("DELETE", "/v1/user/me"),
        ]
    )
    func budget(method: String, path: String) async throws {
        let fixture = try AccountFixture(writesPerMinute: 2)
        for _ in 0..<2 { #expect(try await fixture.send(method, path, token: "fake", json: "{}").status != 429) }
        let refused = try await fixture.send(method, path, token: "fake", json: "{}")
        #expect(refused.status == 429 && refused.header("Retry-After") != nil)
        #expect(try await fixture.send(method, path, token: "fake", json: "{}", from: "192.0.2.2").status != 429)
        fixture.google.setAccount("ya29.jane")
        #expect(try await fixture.connect("ya29.jane").status == 201, "sign-ins use the budget of writes")
        fixture.time.advance(by: .seconds(60))
        #expect(try await fixture.send(method, path, token: "fake", json: "{}").status != 429)
    }
}

import Crypto
import Glibc
import Storage
import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import Routes

@Suite("The app's own sessions")
struct AppSessionsTests {
    private static let refusal = "401 Invalid refresh token"

    @Test("signing in returns both tokens and creates the user")
    func signIn() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let response = try await fixture.send("POST", "/api/auth/mobile/google", json: #"{"access_token":"ya29.jane"}"#)
        #expect(response.status == 200)
        #expect(response["token_type"] == .string("bearer"))
        #expect(response["expires_in"] == .number("1800"))
        let access = try #require(response["access_token"]?.string)
        let claims = try fixture.signer.claims(of: access, at: fixture.time.now)
        #expect(claims["email"] == .string("jane@gmail.com"))
        #expect(claims["type"] == .string("access"))
        let issued = try #require(claims["iat"]?.integer)
        #expect(claims["exp"]?.integer == issued + 1800)

        let user = try await fixture.send("GET", "/api/auth/me", token: access)
        let now = "2027-01-15T08:00:00Z"
        let expected: [String: JSONValue] = [
            "id": try #require(claims["sub"]), "email": .string("jane@gmail.com"), "name": .string("Jane Smith"),
            "picture": .string("https://example.com/jane.png"), "avatar_url": .string("https://example.com/jane.png"),
            "created_at": .string(now), "last_login": .string(now), "is_active": .bool(true),
        ]
        #expect(user.body?.object == expected)
    }

    @Test("a refresh returns two new tokens, even within one second")
    func rotation() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let first = try await fixture.signIn()
        let response = try await fixture.refresh(first.refresh)
        let second = try #require(response["refresh_token"]?.string)
        let access = try #require(response["access_token"]?.string)
        #expect(second != first.refresh && access != first.access)
        #expect(try await fixture.send("GET", "/api/auth/me", token: access).status == 200)
        #expect(try await fixture.send("GET", "/api/auth/me", token: first.access).status == 200)
        let third = try await fixture.refresh(second)
        #expect(third["refresh_token"]?.string != second && third["access_token"]?.string != access)
    }

    @Test(
        "a token presented after the grace, when its successor was used, ends the family with one log line and one notice"
    )
    func reuse() async throws {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        defer { close(ends[0]) }
        let fixture = try AccountFixture(logLevel: .notice, logDescriptor: ends[1])
        fixture.google.setAccount("ya29.jane")
        let first = try await fixture.signIn()
        let second = try #require(try await fixture.refresh(first.refresh)["refresh_token"]?.string)
        let response = try await fixture.refresh(second)
        let third = try #require(response["refresh_token"]?.string)
        let access = try #require(response["access_token"]?.string)
        fixture.time.advance(by: .seconds(60))
        // Two devices have tokens of the family, and the server cannot distinguish the attacker from the user. So the
        // session ends for both.
        for token in [first.refresh, third, first.refresh, second] {
            #expect(try await fixture.refresh(token).statusAndDetail == Self.refusal)
        }
        #expect(try await fixture.send("GET", "/api/auth/me", token: access).status == 401)
        close(ends[1])
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = read(ends[0], &bytes, bytes.count)
        let log = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
        #expect(log.split(separator: "\n").count { $0.contains("a spent refresh token was presented") } == 1)
        let claims = try fixture.signer.claims(of: third, at: fixture.time.now)
        let session = try #require(claims["sid"]?.string.flatMap { SessionID(text: $0) })
        let notices = try await fixture.store.dueNotices(at: fixture.time.now, atMost: 9)
        #expect(notices.map(\.content) == [.sessionReused(session)])
        #expect(notices.map(\.userID) == [claims["sub"]?.string])
    }

    @Test("within the grace any token of the family gets the current tokens and their remaining time")
    func grace() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let first = try await fixture.signIn()
        let second = try #require(try await fixture.refresh(first.refresh)["refresh_token"]?.string)
        let third = try await fixture.refresh(second)
        fixture.time.advance(by: .milliseconds(59_000))
        for token in [first.refresh, second] {
            let again = try await fixture.refresh(token)
            #expect(again["refresh_token"] == third["refresh_token"])
            #expect(again["access_token"] == third["access_token"])
            #expect(again["expires_in"] == .number("1741"))
        }
        let fourth = try await fixture.refresh(try #require(third["refresh_token"]?.string))
        #expect(fourth.status == 200 && fourth["refresh_token"] != third["refresh_token"])
    }

    @Test(
        "a lost response never signs the user out, however late the app repeats the request",
        arguments: [12, 61, 86_400, 20 * 86_400]
    )
    func lostResponse(seconds: Int) async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let first = try await fixture.signIn()
        #expect(try await fixture.refresh(first.refresh).status == 200)
        fixture.time.advance(by: .seconds(seconds))
        _ = try await fixture.store.removeExpired(at: fixture.time.now)
        let again = try await fixture.refresh(first.refresh)
        let second = try #require(again["refresh_token"]?.string)
        fixture.time.advance(by: .seconds(1700))
        #expect(try await fixture.refresh(second).status == 200)
    }

    @Test("a response that is lost on a token's last day does not sign the user out while the session lives")
    func lostResponseOnLastDay() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let first = try await fixture.signIn()
        let day: Duration = .seconds(86_400)
        fixture.time.advance(by: day * 29)
        #expect(try await fixture.refresh(first.refresh).status == 200)
        fixture.time.advance(by: day * 2)
        let second = try #require(try await fixture.refresh(first.refresh)["refresh_token"]?.string)
        fixture.time.advance(by: day)
        #expect(try await fixture.refresh(second).status == 200)
        // An expired token that was left behind is refused, and does not count as a theft.
        #expect(try await fixture.refresh(first.refresh).statusAndDetail == Self.refusal)
        #expect(try await fixture.refresh(second).status == 200)
    }

    @Test("a token from a clock that was ahead is accepted once the clock is right")
    func clockAhead() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        fixture.time.stepWallClock(by: .seconds(5 * 86_400))
        let first = try await fixture.signIn()
        fixture.time.stepWallClock(by: .seconds(-5 * 86_400))
        #expect(try await fixture.refresh(first.refresh).status == 200)
    }

    @Test("a step of the wall clock does not end the grace", arguments: [-3500, 7200])
    func clockStep(seconds: Int) async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let first = try await fixture.signIn()
        let second = try #require(try await fixture.refresh(first.refresh)["refresh_token"]?.string)
        let third = try #require(try await fixture.refresh(second)["refresh_token"]?.string)
        fixture.time.stepWallClock(by: .seconds(seconds))
        #expect(try await fixture.refresh(first.refresh)["refresh_token"]?.string == third)
        _ = try await fixture.store.removeExpired(at: fixture.time.now)
        #expect(try await fixture.refresh(first.refresh).status == 200)
    }

    @Test("simultaneous requests with one token all get the same tokens")
    func concurrentRotation() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let first = try await fixture.signIn()
        let responses = try await withThrowingTaskGroup(of: [String: JSONValue]?.self) { group in
            for _ in 0..<20 {
                group.addTask { try await fixture.refresh(first.refresh).body?.object }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(responses.allSatisfy { $0 == responses[0] })
        let successor = try #require(responses[0]?["refresh_token"]?.string)
        #expect(try await fixture.refresh(successor).status == 200)
    }

    @Test("all refusals have the same text, and do not end a session")
    func refusals() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let tokens = try await fixture.signIn()
        let claims = try fixture.signer.claims(of: tokens.refresh, at: fixture.time.now)
        let sid = try #require(claims["sid"]?.string)
        let sub = try #require(claims["sub"]?.string)
        let foreignSigner = try TokenSigner(secrets: [Secret("another issuer's secret of thirty-two bytes")])
        let body: (inout JSONLine) -> Void = { line in
            line.field("sub", sub)
            line.field("type", "refresh")
            line.field("sid", sid)
        }
        let refused = [
            "nonsense", tokens.access, fixture.sign(by: foreignSigner, body),
            fixture.sign(lifetime: .seconds(-1), body),
            fixture.sign {
                $0.field("sub", sub)
                $0.field("type", "refresh")
                $0.field("sid", "000102030405060708090a0b0c0d0e0f")
            },
            fixture.sign {
                $0.field("sub", "another user")
                $0.field("type", "refresh")
                $0.field("sid", sid)
            },
        ]
        for token in refused { #expect(try await fixture.refresh(token).statusAndDetail == Self.refusal) }
        #expect(try await fixture.refresh(tokens.refresh).status == 200)
    }

    @Test("a user who is joined with another one stays signed in, as that user")
    func joined() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let (phone, tablet) = (try await fixture.signIn(), try await fixture.signIn())
        let claims = try fixture.signer.claims(of: phone.refresh, at: fixture.time.now)
        let id = try #require(claims["sub"]?.string)
        #expect(try await fixture.store.user(id)?.isFromSignIn == true)
        let now = fixture.time.now
        try await fixture.store.transact { transaction in
            try transaction.insert(User(id: "backend", createdAt: now))
            try transaction.move(user: id, to: "backend", at: now)
        }
        #expect(try await fixture.send("GET", "/api/auth/me", token: phone.access).status == 401)
        let renewed = try await fixture.refresh(phone.refresh)
        let access = try #require(renewed["access_token"]?.string)
        #expect(try await fixture.send("GET", "/api/auth/me", token: access)["id"] == .string("backend"))
        #expect(try await fixture.refresh(phone.refresh).body == renewed.body)
        for token in [tablet.access, access] {
            #expect(try await fixture.send("POST", "/api/auth/logout", token: token).status == 200)
        }
        #expect(try await fixture.refresh(tablet.refresh).statusAndDetail == Self.refusal)
    }

    @Test("a user who is joined with another one during a request stays signed in, or is signed out as asked")
    func joinedMeanwhile() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let phone = try await fixture.signIn()
        let first = try await fixture.joinUser(of: phone, with: "first") { join in
            fixture.store.beforeQuery { if $0 == "user by id" { await join() } }
            return try await fixture.refresh(phone.refresh)
        }
        let refresh = try #require(first["refresh_token"]?.string)
        let renewed = (access: try #require(first["access_token"]?.string), refresh: refresh)
        let logout = try await fixture.joinUser(of: renewed, with: "second") { join in
            fixture.store.beforeTransaction { await join() }
            return try await fixture.send("POST", "/api/auth/logout", token: renewed.access)
        }
        #expect(logout.status == 200)
        #expect(try await fixture.refresh(refresh).statusAndDetail == Self.refusal)
        #expect(try await fixture.store.transact { try !$0.hasSession(ofUser: "second") })
    }

    @Test("a correctly signed token that was never issued ends the family")
    func unknownToken() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let tokens = try await fixture.signIn()
        let claims = try fixture.signer.claims(of: tokens.refresh, at: fixture.time.now)
        let made = fixture.sign {
            $0.field("sub", claims["sub"]?.string ?? "")
            $0.field("type", "refresh")
            $0.field("sid", claims["sid"]?.string ?? "")
        }
        #expect(try await fixture.refresh(made).statusAndDetail == Self.refusal)
        #expect(try await fixture.refresh(tokens.refresh).statusAndDetail == Self.refusal)
    }

    @Test("a session without refreshes ends after thirty days; refreshes extend it")
    func expiry() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let first = try await fixture.signIn()
        fixture.time.advance(by: .seconds(29 * 86_400))
        let second = try #require(try await fixture.refresh(first.refresh)["refresh_token"]?.string)
        fixture.time.advance(by: .seconds(29 * 86_400))
        #expect(try await fixture.refresh(second).status == 200)
        fixture.time.advance(by: .seconds(31 * 86_400))
        #expect(try await fixture.refresh(second).statusAndDetail == Self.refusal)
    }

    @Test("an access token lives half an hour")
    func accessExpiry() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let tokens = try await fixture.signIn()
        fixture.time.advance(by: .seconds(1799))
        #expect(try await fixture.send("GET", "/v1/user/me", token: tokens.access).status == 200)
        fixture.time.advance(by: .seconds(1))
        #expect(try await fixture.send("GET", "/v1/user/me", token: tokens.access).statusAndCode == "401 TOKEN_EXPIRED")
    }

    @Test("a refresh requires JSON with a token")
    func badBodies() async throws {
        let fixture = try AccountFixture()
        let path = "/api/auth/refresh"
        #expect(try await fixture.send("POST", path, json: "{").status == 400)
        #expect(try await fixture.send("POST", path, json: "{}").statusAndDetail == "400 refresh_token is required")
        #expect(try await fixture.send("POST", path, json: #"{"refresh_token":1}"#).status == 400)
        #expect(try await fixture.send("POST", path, form: "refresh_token=a").status == 415)
        let signIn = try await fixture.send("POST", "/api/auth/mobile/google", json: "{}")
        #expect(signIn.statusAndDetail == "400 access_token is required")
    }

    // MARK: Logging out

    enum LogOutRequest: CaseIterable {
        case accessToken, refreshToken, refreshTokenInBody, accessTokenAndEmptyObject
    }

    private func logOut(
        _ fixture: AccountFixture,
        with tokens: (access: String, refresh: String),
        _ way: LogOutRequest
    ) async throws -> ParsedResponse {
        switch way {
        case .accessToken: try await fixture.send("POST", "/api/auth/logout", token: tokens.access)
        case .refreshToken: try await fixture.send("POST", "/api/auth/logout", token: tokens.refresh)
        case .refreshTokenInBody:
            try await fixture.send("POST", "/api/auth/logout", json: #"{"refresh_token":"\#(tokens.refresh)"}"#)
        case .accessTokenAndEmptyObject:
            try await fixture.send("POST", "/api/auth/logout", token: tokens.access, json: "{}")
        }
    }

    @Test("logging out ends the family", arguments: LogOutRequest.allCases)
    func logOut(_ way: LogOutRequest) async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let tokens = try await fixture.signIn()
        let other = try await fixture.signIn()
        let response = try await logOut(fixture, with: tokens, way)
        #expect(response.status == 200)
        #expect(response.body?.object == ["message": .string("Successfully logged out")])
        #expect(try await fixture.refresh(tokens.refresh).statusAndDetail == Self.refusal)
        let user = try await fixture.send("GET", "/api/auth/me", token: tokens.access)
        #expect(user.statusAndDetail == "401 Could not validate credentials")
        #expect(try await fixture.send("GET", "/v1/user/me", token: tokens.access).statusAndCode == "401 INVALID_TOKEN")
        // Another device's session continues.
        #expect(try await fixture.refresh(other.refresh).status == 200)
    }

    @Test("a second log-out gets the same response as the first, with either token", arguments: LogOutRequest.allCases)
    func secondLogOut(way: LogOutRequest) async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let tokens = try await fixture.signIn()
        let first = try await logOut(fixture, with: tokens, way)
        let second = try await logOut(fixture, with: tokens, way)
        #expect(first.status == 200 && second.status == 200)
        #expect(first.body == second.body)
        // A token that the worker did not sign is still refused, whatever session it names.
        let forged = String(tokens.refresh.dropLast(2)) + "AA"
        #expect(try await fixture.send("POST", "/api/auth/logout", token: forged).status == 401)
    }

    @Test("logging out with an expired refresh token ends the session if it lives")
    func lateLogOut() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let tokens = try await fixture.signIn()
        fixture.time.advance(by: .seconds(29 * 86_400))
        let successor = try #require(try await fixture.refresh(tokens.refresh)["refresh_token"]?.string)
        fixture.time.advance(by: .seconds(2 * 86_400))
        #expect(try await logOut(fixture, with: tokens, .refreshTokenInBody).status == 200)
        #expect(try await fixture.refresh(successor).statusAndDetail == Self.refusal)
    }

    @Test("an invalid token cannot log out")
    func badLogOut() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let tokens = try await fixture.signIn()
        let path = "/api/auth/logout"
        #expect(try await fixture.send("POST", path).status == 401)
        #expect(try await fixture.send("POST", path, token: "nonsense").header("WWW-Authenticate") == "Bearer")
        fixture.time.advance(by: .seconds(1800))
        #expect(try await fixture.send("POST", path, token: tokens.access).status == 401)
        #expect(try await fixture.refresh(tokens.refresh).status == 200)
    }

    @Test("a backend's own token does not have a family to end")
    func foreignLogOut() async throws {
        let fixture = try AccountFixture()
        #expect(try await fixture.send("POST", "/api/auth/logout", token: fixture.token(ofUser: "42")).status == 200)
    }

    @Test("the status shows that sign-in is configured, and does not contain the client ids")
    func status() async throws {
        let response = try await AccountFixture().send("GET", "/api/auth/status")
        #expect(response.status == 200)
        #expect(response["configured"] == .bool(true))
        #expect(response["google_client_ids"] == .number("2"))
        #expect(!response.text.contains("apps.googleusercontent.com"))
    }
}

extension AccountFixture {
    /// Sends a request, and joins the user of a session with another one when the request calls the closure.
    fileprivate func joinUser(
        of session: (access: String, refresh: String),
        with other: String,
        during request: (_ join: @escaping @Sendable () async -> Void) async throws -> ParsedResponse
    ) async throws -> ParsedResponse {
        let claims = try signer.claims(of: session.refresh, at: time.now)
        let (id, now) = (try #require(claims["sub"]?.string), time.now)
        let error = AwaitedState<(any Error)?>(nil)
        let response = try await request { [store] in
            store.beforeQuery(nil)
            store.beforeTransaction {}
            do {
                try await store.database.transact { transaction in
                    try transaction.insert(User(id: other, createdAt: now))
                    try transaction.move(user: id, to: other, at: now)
                }
            } catch let failure {
                error.change { $0 = failure }
            }
        }
        if let error = error.value { throw error }
        return response
    }
}

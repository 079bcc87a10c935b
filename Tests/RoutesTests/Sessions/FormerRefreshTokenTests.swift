import Crypto
import TestSupport
import Testing

@testable import Base
@testable import Routes
@testable import Storage

@Suite("Refresh tokens of a former backend")
struct FormerRefreshTokenTests {
    enum TokenFormat: CaseIterable {
        case comprehensionEngine, payPulse
    }

    private static let refusal = "401 Invalid refresh token"

    private static func fixture(acceptFor days: Int? = 30) async throws -> AccountFixture {
        let time = ManualTime()
        let end = days.map { time.now + .seconds($0 * 86_400) }
        let fixture = try AccountFixture(acceptFormerTokensUntil: end)
        try await fixture.store.transact { transaction in
            try transaction.insert(User(id: "42", createdAt: time.now, email: "jane@example.com"))
            var inactive = User(id: "43", createdAt: time.now)
            inactive.isActive = false
            try transaction.insert(inactive)
        }
        return fixture
    }

    /// Returns a token as the former backends sign it: without `jti` and without a session.
    private static func token(
        _ fixture: AccountFixture,
        _ shape: TokenFormat = .comprehensionEngine,
        user: String = "42",
        type: String = "refresh",
        days: Int = 30,
        by signer: TokenSigner? = nil
    ) -> String {
        var claims = JSONLine()
        claims.field(shape == .payPulse ? "user_id" : "sub", user)
        claims.field("email", "jane@example.com")
        claims.field("exp", (fixture.time.now + .seconds(days * 86_400)).milliseconds / 1000)
        claims.field("type", type)
        return (signer ?? fixture.signer).sign(claims).reveal()
    }

    @Test("a former refresh token begins a session of its user", arguments: TokenFormat.allCases)
    func accepted(shape: TokenFormat) async throws {
        let fixture = try await Self.fixture()
        let response = try await fixture.refresh(Self.token(fixture, shape))
        #expect(response.status == 200)
        let access = try #require(response["access_token"]?.string)
        let refresh = try #require(response["refresh_token"]?.string)
        #expect(try await fixture.send("GET", "/api/auth/me", token: access)["id"] == .string("42"))
        #expect(try await fixture.refresh(refresh).status == 200)
    }

    @Test("it is refused without the setting, after the setting's date, and as an access token")
    func refused() async throws {
        let off = try await Self.fixture(acceptFor: nil)
        #expect(try await off.refresh(Self.token(off)).statusAndDetail == Self.refusal)

        let fixture = try await Self.fixture()
        let foreignSigner = try TokenSigner(secrets: [Secret("another issuer's secret of thirty-two bytes")])
        let tokens = [
            Self.token(fixture, user: "43"), Self.token(fixture, type: "access"), Self.token(fixture, days: -1),
            Self.token(fixture, user: "unknown", days: -1), Self.token(fixture, by: foreignSigner),
        ]
        for token in tokens { #expect(try await fixture.refresh(token).statusAndDetail == Self.refusal) }
        let late = Self.token(fixture, days: 90)
        fixture.time.advance(by: .seconds(30 * 86_400))
        #expect(try await fixture.refresh(late).statusAndDetail == Self.refusal)
    }

    @Test("a user who is not imported yet is asked to wait, and not signed out")
    func notImportedYet() async throws {
        let fixture = try await Self.fixture()
        let token = Self.token(fixture, user: "late")
        let response = try await fixture.refresh(token)
        #expect(response.statusAndDetail == "503 The user is not moved yet; try again")
        #expect(response.header("Retry-After") == "60")
        // By which a proxy knows that the former backend can serve this request.
        #expect(response.header("Refresh-Worker-User") == "not-moved")
        let user = User(id: "late", createdAt: fixture.time.now)
        try await fixture.store.transact { try $0.insert(user) }
        #expect(try await fixture.refresh(token).status == 200)
        fixture.time.advance(by: .seconds(30 * 86_400))
        let late = Self.token(fixture, user: "too late")
        let refused = try await fixture.refresh(late)
        #expect(refused.statusAndDetail == Self.refusal && refused.header("Refresh-Worker-User") == nil)
    }

    @Test("it is not accepted as an access token")
    func noAccess() async throws {
        let fixture = try await Self.fixture()
        #expect(try await fixture.send("GET", "/api/auth/me", token: Self.token(fixture)).status == 401)
    }

    @Test("simultaneous requests with one former token get the tokens of one session")
    func concurrent() async throws {
        let fixture = try await Self.fixture()
        let token = Self.token(fixture)
        let responses = try await withThrowingTaskGroup(of: [String: JSONValue]?.self) { group in
            for _ in 0..<8 { group.addTask { try await fixture.refresh(token).body?.object } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(responses[0]?["refresh_token"] != nil)
        #expect(responses.allSatisfy { $0 == responses[0] })
    }

    @Test("a request whose response was lost can be repeated, and reuse ends the session permanently")
    func family() async throws {
        let fixture = try await Self.fixture()
        let token = Self.token(fixture)
        #expect(try await fixture.refresh(token).status == 200)
        fixture.time.advance(by: .seconds(86_400))
        let second = try #require(try await fixture.refresh(token)["refresh_token"]?.string)
        fixture.time.advance(by: .seconds(61))
        let third = try #require(try await fixture.refresh(second)["refresh_token"]?.string)
        fixture.time.advance(by: .seconds(61))
        for used in [token, third, token] { #expect(try await fixture.refresh(used).statusAndDetail == Self.refusal) }
        // Another device's token has a session of its own.
        #expect(try await fixture.refresh(Self.token(fixture, days: 29)).status == 200)
    }

    @Test(
        "a response that is lost on the token's last day does not sign the user out, and an expired token cannot begin a session"
    )
    func lastDay() async throws {
        let fixture = try await Self.fixture(acceptFor: 60)
        let (token, other) = (Self.token(fixture, days: 2), Self.token(fixture, days: 3))
        fixture.time.advance(by: .seconds(86_400))
        #expect(try await fixture.refresh(token).status == 200)
        fixture.time.advance(by: .seconds(2 * 86_400))
        #expect(try await fixture.refresh(token).status == 200)
        #expect(try await fixture.refresh(other).statusAndDetail == Self.refusal)
    }

    @Test("logging out with it ends it, even if it has not begun a session", arguments: [false, true])
    func logOut(hasBegun: Bool) async throws {
        let fixture = try await Self.fixture()
        let token = Self.token(fixture)
        let body = #"{"refresh_token":"\#(token)"}"#
        let successor = hasBegun ? try await fixture.refresh(token)["refresh_token"]?.string : nil
        #expect(try await fixture.send("POST", "/api/auth/logout", json: body).status == 200)
        #expect(try await fixture.refresh(token).statusAndDetail == Self.refusal)
        if let successor { #expect(try await fixture.refresh(successor).statusAndDetail == Self.refusal) }
    }

    @Test("it stays refused until it expires once its session has ended")
    func forgotten() async throws {
        let fixture = try await Self.fixture(acceptFor: 400)
        let token = Self.token(fixture, days: 365)
        #expect(try await fixture.refresh(token).status == 200)
        #expect(
            try await fixture.send("POST", "/api/auth/logout", json: #"{"refresh_token":"\#(token)"}"#).status == 200
        )
        for _ in 0..<12 {
            fixture.time.advance(by: .seconds(30 * 86_400))
            _ = try await fixture.store.removeExpired(at: fixture.time.now)
            #expect(try await fixture.refresh(token).statusAndDetail == Self.refusal)
        }
    }
}

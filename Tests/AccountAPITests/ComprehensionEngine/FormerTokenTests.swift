import Clocks
import JSON
import Secrets
import Store
import Testing

@testable import AccountAPI

@Suite("Refresh tokens of a former backend")
struct FormerTokenTests {
    enum Shape: CaseIterable {
        case comprehensionEngine, payPulse
    }

    private static let refusal = "401 Invalid refresh token"

    private static func world(acceptFor days: Int? = 30) async throws -> AccountWorld {
        let time = ManualTime()
        let end = days.map { time.now + .seconds($0 * 86_400) }
        let world = try AccountWorld(sessionRules: SessionRules(acceptFormerTokensUntil: end))
        try await world.store.transact { transaction in
            try transaction.insert(User(id: "42", createdAt: time.now, email: "jane@example.com"))
            var inactive = User(id: "43", createdAt: time.now)
            inactive.isActive = false
            try transaction.insert(inactive)
        }
        return world
    }

    /// Returns a token as the former backends sign it: without `jti` and without a session.
    private static func token(
        _ world: AccountWorld,
        _ shape: Shape = .comprehensionEngine,
        user: String = "42",
        type: String = "refresh",
        days: Int = 30,
        by signer: TokenSigner? = nil
    ) -> String {
        var claims = JSONLine()
        claims.field(shape == .payPulse ? "user_id" : "sub", user)
        claims.field("email", "jane@example.com")
        claims.field("exp", (world.time.now + .seconds(days * 86_400)).milliseconds / 1000)
        claims.field("type", type)
        return (signer ?? world.signer).sign(claims).reveal()
    }

    @Test("a former refresh token begins a session of its user", arguments: Shape.allCases)
    func accepted(shape: Shape) async throws {
        let world = try await Self.world()
        let answer = try await world.refresh(Self.token(world, shape))
        #expect(answer.status == 200)
        let access = try #require(answer["access_token"]?.string)
        let refresh = try #require(answer["refresh_token"]?.string)
        #expect(try await world.ask("GET", "/api/auth/me", token: access)["id"] == .string("42"))
        #expect(try await world.refresh(refresh).status == 200)
    }

    @Test("it is refused without the setting, after the setting's date, and as an access token")
    func refused() async throws {
        let off = try await Self.world(acceptFor: nil)
        #expect(try await off.refresh(Self.token(off)).comprehension == Self.refusal)

        let world = try await Self.world()
        let stranger = try TokenSigner(secrets: [Secret("a stranger's secret of thirty-two bytes")])
        let tokens = [
            Self.token(world, user: "unknown"), Self.token(world, user: "43"), Self.token(world, type: "access"),
            Self.token(world, days: -1), Self.token(world, by: stranger),
        ]
        for token in tokens { #expect(try await world.refresh(token).comprehension == Self.refusal) }
        let late = Self.token(world, days: 90)
        world.time.advance(by: .seconds(30 * 86_400))
        #expect(try await world.refresh(late).comprehension == Self.refusal)
    }

    @Test("it is not accepted as an access token")
    func noAccess() async throws {
        let world = try await Self.world()
        #expect(try await world.ask("GET", "/api/auth/me", token: Self.token(world)).status == 401)
    }

    @Test("simultaneous requests with one former token get the tokens of one session")
    func concurrent() async throws {
        let world = try await Self.world()
        let token = Self.token(world)
        let answers = try await withThrowingTaskGroup(of: [String: JSONValue]?.self) { group in
            for _ in 0..<8 { group.addTask { try await world.refresh(token).body?.object } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(answers[0]?["refresh_token"] != nil)
        #expect(answers.allSatisfy { $0 == answers[0] })
    }

    @Test("a request whose answer was lost can be repeated, and reuse ends the session permanently")
    func family() async throws {
        let world = try await Self.world()
        let token = Self.token(world)
        #expect(try await world.refresh(token).status == 200)
        world.time.advance(by: .seconds(86_400))
        let second = try #require(try await world.refresh(token)["refresh_token"]?.string)
        world.time.advance(by: .seconds(61))
        let third = try #require(try await world.refresh(second)["refresh_token"]?.string)
        world.time.advance(by: .seconds(61))
        for used in [token, third, token] { #expect(try await world.refresh(used).comprehension == Self.refusal) }
        // Another device's token has a session of its own.
        #expect(try await world.refresh(Self.token(world, days: 29)).status == 200)
    }

    @Test(
        "an answer that is lost on the token's last day does not sign the user out, and an expired token cannot begin a session"
    )
    func lastDay() async throws {
        let world = try await Self.world(acceptFor: 60)
        let (token, other) = (Self.token(world, days: 2), Self.token(world, days: 3))
        world.time.advance(by: .seconds(86_400))
        #expect(try await world.refresh(token).status == 200)
        world.time.advance(by: .seconds(2 * 86_400))
        #expect(try await world.refresh(token).status == 200)
        #expect(try await world.refresh(other).comprehension == Self.refusal)
    }

    @Test("logging out with it ends it, even if it has not begun a session", arguments: [false, true])
    func logOut(hasBegun: Bool) async throws {
        let world = try await Self.world()
        let token = Self.token(world)
        let body = #"{"refresh_token":"\#(token)"}"#
        let successor = hasBegun ? try await world.refresh(token)["refresh_token"]?.string : nil
        #expect(try await world.ask("POST", "/api/auth/logout", json: body).status == 200)
        #expect(try await world.refresh(token).comprehension == Self.refusal)
        if let successor { #expect(try await world.refresh(successor).comprehension == Self.refusal) }
    }

    @Test("it stays refused until it expires once its session has ended")
    func forgotten() async throws {
        let world = try await Self.world(acceptFor: 400)
        let token = Self.token(world, days: 365)
        #expect(try await world.refresh(token).status == 200)
        #expect(try await world.ask("POST", "/api/auth/logout", json: #"{"refresh_token":"\#(token)"}"#).status == 200)
        for _ in 0..<12 {
            world.time.advance(by: .seconds(30 * 86_400))
            _ = try await world.store.sweep(at: world.time.now)
            #expect(try await world.refresh(token).comprehension == Self.refusal)
        }
    }
}

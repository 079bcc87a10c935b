import Testing

@testable import GoogleSandbox

@Suite("Rotation of refresh tokens")
struct RotationTests {
    /// Uses one token after another, with successors named 1, 2, 3, and so on; returns the results and the tokens that
    /// are then valid.
    private func run(_ tokens: [String], _ rotation: RotationPolicy) -> (uses: [RefreshTokenChain.Use], live: [String])
    {
        var chain = RefreshTokenChain("0")
        var issued = 0
        let uses = tokens.map { token in
            chain.use(token, rotation: rotation) {
                issued += 1
                return String(issued)
            }
        }
        return (uses, chain.live)
    }

    @Test("Without rotation the token stays")
    func off() {
        let (uses, live) = run(["0", "0"], .off)
        #expect(uses == [.kept, .kept])
        #expect(live == ["0"])
    }

    @Test("A careful server keeps the predecessor until its successor is used")
    func careful() {
        let (uses, live) = run(["0", "1", "0", "2"], .careful)
        #expect(uses == [.rotated(to: "1"), .rotated(to: "2"), .refused, .rotated(to: "3")])
        #expect(live == ["2", "3"])
    }

    @Test("A client that lost the answer gets another successor, and the lost one is dead")
    func lostSuccessor() {
        let (uses, live) = run(["0", "0", "1", "2"], .careful)
        #expect(uses == [.rotated(to: "1"), .rotated(to: "2"), .refused, .rotated(to: "3")])
        #expect(live == ["2", "3"])
    }

    @Test("With a strict server the predecessor is dead at once")
    func strict() {
        let (uses, live) = run(["0", "0", "1", "2"], .strict)
        #expect(uses == [.rotated(to: "1"), .refused, .rotated(to: "2"), .rotated(to: "3")])
        #expect(live == ["3"])
    }

    @Test("Endless rotation needs constant memory")
    func memory() async throws {
        let fixture = SandboxFixture()
        await fixture.grant("0")
        await fixture.control("settings", #"{"rotation":true}"#)
        var token = "0"
        for _ in 0..<200 {
            token = try #require(await fixture.refresh(token)?.body["refresh_token"]?.stringValue)
        }
        #expect(fixture.sandbox.withState { $0.indexByRefreshToken.count } <= 6)
        #expect(await fixture.refresh("0")?.body["error_description"] == "Bad Request")
    }

    @Test("A lost answer has still rotated the token")
    func lostAnswer() async throws {
        let fixture = SandboxFixture()
        await fixture.grant("0")
        await fixture.control("settings", #"{"rotation":true,"strict_rotation":true}"#)
        await fixture.control("grants/set", #"{"sub":"s1","answer":{"preset":"lost_answer","times":1}}"#)
        #expect(await fixture.refresh("0") == nil)
        #expect(await fixture.refresh("0")?.error == "invalid_grant")
    }

    @Test("A rotated token may come without an access token")
    func withoutAccessToken() async throws {
        let fixture = SandboxFixture()
        await fixture.grant("0")
        await fixture.control("settings", #"{"rotation":true,"outage":"without_access_token"}"#)
        let answer = try #require(await fixture.refresh("0"))
        #expect(answer.status == 200)
        #expect(answer.body["access_token"] == nil)
        let successor = try #require(answer.body["refresh_token"]?.stringValue)
        await fixture.control("settings", #"{"outage":"none"}"#)
        #expect(await fixture.refresh(successor)?.status == 200)
        #expect(await fixture.refresh("0")?.error == "invalid_grant")
    }
}

import Testing

@testable import GoogleSandbox

@Suite("Rotation of refresh tokens")
struct RotationTests {
    /// Uses one token after another, with fresh ones named 1, 2, 3…; returns the results and the tokens that are then
    /// valid.
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

    @Test("A client that lost the answer gets another successor, and the lost one dies")
    func lost() {
        let (uses, live) = run(["0", "0", "1", "2"], .careful)
        #expect(uses == [.rotated(to: "1"), .rotated(to: "2"), .refused, .rotated(to: "3")])
        #expect(live == ["2", "3"])
    }

    @Test("A strict server kills the predecessor at once")
    func strict() {
        let (uses, live) = run(["0", "0", "1", "2"], .strict)
        #expect(uses == [.rotated(to: "1"), .refused, .rotated(to: "2"), .rotated(to: "3")])
        #expect(live == ["3"])
    }

    @Test("Endless rotation needs constant memory")
    func memory() async throws {
        let harness = SandboxHarness()
        await harness.grant("0")
        await harness.control("settings", #"{"rotation":true}"#)
        var token = "0"
        for _ in 0..<200 {
            token = try #require(await harness.refresh(token)?.body["refresh_token"]?.stringValue)
        }
        #expect(harness.sandbox.withState { $0.placeByRefreshToken.count } <= 6)
        #expect(await harness.refresh("0")?.body["error_description"] == "Bad Request")
    }

    @Test("A lost answer has still rotated the token")
    func lostAnswer() async throws {
        let harness = SandboxHarness()
        await harness.grant("0")
        await harness.control("settings", #"{"rotation":true,"strict_rotation":true}"#)
        await harness.control("grants/set", #"{"sub":"s1","answer":{"preset":"lost_answer","times":1}}"#)
        #expect(await harness.refresh("0") == nil)
        #expect(await harness.refresh("0")?.error == "invalid_grant")
    }

    @Test("A rotated token may come without an access token")
    func withoutAccessToken() async throws {
        let harness = SandboxHarness()
        await harness.grant("0")
        await harness.control("settings", #"{"rotation":true,"outage":"without_access_token"}"#)
        let answer = try #require(await harness.refresh("0"))
        #expect(answer.status == 200)
        #expect(answer.body["access_token"] == nil)
        let successor = try #require(answer.body["refresh_token"]?.stringValue)
        await harness.control("settings", #"{"outage":"none"}"#)
        #expect(await harness.refresh(successor)?.status == 200)
        #expect(await harness.refresh("0")?.error == "invalid_grant")
    }
}

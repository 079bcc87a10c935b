import TestSupport
import Testing

@testable import GoogleSandbox

@Suite("Scripted behaviour of the sandbox", .timeLimit(.minutes(10)))
struct ScriptTests {
    let fixture = SandboxFixture()

    @Test("Every preset is answered unchanged, as often as requested", arguments: FixedAnswer.presets.map(\.name))
    func preset(name: String) async throws {
        let fixed = try #require(FixedAnswer.presets.first { $0.name == name }).answer
        await fixture.grant("1//0a")
        await fixture.control("grants/set", #"{"refresh_token":"1//0a","answer":{"preset":"\#(name)","times":2}}"#)
        for _ in 0..<2 {
            let answer = try #require(await fixture.refresh("1//0a"))
            #expect(answer.status == fixed.status)
            #expect(answer.header("Content-Type") == fixed.contentType)
            #expect(answer.header("Retry-After") == fixed.retryAfter.map(String.init))
            #expect(
                answer.body == OrderedJSON.parsed(fixed.body) ?? .string(String(decoding: fixed.body, as: UTF8.self))
            )
        }
        #expect(await fixture.refresh("1//0a")?.accessToken.isEmpty == false)
    }

    @Test("The names of the faults are unique")
    func names() {
        #expect(Set(SandboxFault.names).count == SandboxFault.names.count)
        for name in SandboxFault.names { #expect(SandboxFault(named: name)?.name == name) }
    }

    @Test(
        "An outage affects every request until it ends",
        arguments: ["html502", "http503", "429", "invalid_client", "html200"]
    )
    func outage(name: String) async throws {
        await fixture.grant("1//0a")
        await fixture.control("settings", #"{"outage":"\#(name)","retry_after":7}"#)
        let fixed = try #require(FixedAnswer.presets.first { $0.name == name }).answer
        let answer = try #require(await fixture.refresh("1//0a"))
        #expect(answer.status == fixed.status)
        #expect(answer.header("Retry-After") == ([429, 503].contains(fixed.status) ? "7" : nil))
        await fixture.control("settings", #"{"outage":"none"}"#)
        #expect(await fixture.refresh("1//0a")?.status == 200)
    }

    @Test("App Check refuses the requests of one client from when it is enforced until it is not")
    func appCheck() async throws {
        await fixture.grant("1//0a")
        await fixture.control("grants", #"{"grants":[{"refresh_token":"1//0b","client_id":"c2"}]}"#)
        #expect(await fixture.refresh("1//0a")?.status == 200)
        await fixture.control("settings", #"{"app_check":["c1"]}"#)
        for token in ["1//0a", "unknown"] {
            let refused = try #require(await fixture.refresh(token))
            #expect(refused.status == 400 && refused.error == "invalid_request")
            let text = refused.body["error_description"]?.stringValue
            #expect(text == "We cannot verify the authenticity of this app. Token failed.")
        }
        #expect(await fixture.refresh("1//0b", client: "c2")?.status == 200, "another client is not concerned")
        #expect(await fixture.ask("GET", "/control/settings")?.body["app_check"] == ["c1"])
        await fixture.control("settings", #"{"app_check":[]}"#)
        #expect(await fixture.refresh("1//0a")?.status == 200, "the grant has not changed")
    }

    @Test("A wave affects the same part of the grants while it lasts")
    func wave() async {
        await fixture.control("grants", #"{"grants":[\#(Self.thousandGrants)]}"#)
        await fixture.control("settings", #"{"wave_rate":0.66}"#)
        var affected: [[Int]] = []
        for _ in 0..<2 {
            var round: [Int] = []
            for number in 0..<1000 where await fixture.refresh("t\(number)")?.error == "invalid_grant" {
                round.append(number)
            }
            affected.append(round)
        }
        #expect((600...720).contains(affected[0].count))
        #expect(affected[0] == affected[1])
        await fixture.control("settings", #"{"wave_rate":0}"#)
        #expect(await fixture.refresh("t\(affected[0].first ?? 0)")?.status == 200)
    }

    private static var thousandGrants: String {
        (0..<1000).map { #"{"refresh_token":"t\#($0)","client_id":"c1"}"# }.joined(separator: ",")
    }

    @Test("A fraction of the requests fails, the same ones for the same seed")
    func errorRate() async {
        await fixture.grant("1//0a")
        var rounds: [[Bool]] = []
        for _ in 0..<2 {
            await fixture.control("settings", #"{"error_rate":0.2,"error":{"preset":"http503"},"seed":42}"#)
            var round: [Bool] = []
            for _ in 0..<500 { round.append(await fixture.refresh("1//0a")?.status == 503) }
            rounds.append(round)
        }
        #expect((60...140).contains(rounds[0].count { $0 }))
        #expect(rounds[0] == rounds[1])
    }

    @Test("A request on hold waits for its release, and a second one for the grant is counted")
    func hold() async throws {
        await fixture.grant("1//0a")
        await fixture.control("grants/set", #"{"sub":"s1","hold":true}"#)
        async let first = fixture.refresh("1//0a")
        async let second = fixture.refresh("1//0a")
        #expect(await fixture.ask("GET", "/control/wait?holding=2")?.status == 200)
        #expect(await fixture.statistics()["concurrent_same_grant"] == 1)
        #expect(await fixture.statistics()["in_flight"] == 2)
        await fixture.control("grants/set", #"{"sub":"s1","revoked":true}"#)
        await fixture.control("release", #"{"sub":"s1"}"#)
        let answers = await [first, second]
        #expect(answers.map { $0?.error } == ["invalid_grant", "invalid_grant"])
        let statistics = await fixture.statistics()
        #expect(statistics["in_flight"] == 0)
        #expect(statistics["holding"] == 0)
        #expect(statistics["max_in_flight"] == 2)
    }

    @Test("A reset releases a request on hold and does not count it")
    func resetWhileOnHold() async {
        await fixture.grant("1//0a")
        await fixture.control("grants/set", #"{"sub":"s1","hold":true}"#)
        async let onHold = fixture.refresh("1//0a")
        #expect(await fixture.ask("GET", "/control/wait?holding=1")?.status == 200)
        await fixture.control("reset")
        #expect(await onHold?.error == "invalid_grant")
        let statistics = await fixture.statistics()
        #expect(statistics["in_flight"] == 0)
        #expect(statistics["holding"] == 0)
    }

    @Test(
        "A client that disconnects ends the wait of a request that gets no answer",
        arguments: [#"{"sub":"s1","hang":true}"#, #"{"sub":"s1","hold":true}"#]
    )
    func clientDisconnects(body: String) async throws {
        await fixture.grant("1//0a")
        await fixture.control("grants/set", body)
        let request = Task { await fixture.refresh("1//0a") }
        try await poll { await fixture.statistics()["in_flight"] == 1 }
        request.cancel()
        #expect(await request.value == nil)
        let statistics = await fixture.statistics()
        #expect(statistics["in_flight"] == 0)
        #expect(statistics["by_answer"]?["client_gone"] == 1)
    }

    @Test("Requests and answers are counted for each grant")
    func counts() async {
        await fixture.grant("1//0a")
        _ = await fixture.refresh("1//0a")
        await fixture.control("grants/set", #"{"sub":"s1","answer":{"status":500,"body":"x","times":1}}"#)
        _ = await fixture.refresh("1//0a")
        let statistics = await fixture.statistics()
        #expect(statistics["by_answer"] == ["http_500": 1, "ok": 1])
        #expect(statistics["by_route"] == ["token": 2])
        guard case .array(let grants) = statistics["grants"] else {
            Issue.record("no list of grants")
            return
        }
        #expect(grants.map { $0["requests"] } == [2])
        #expect(grants.map { $0["ok"] } == [1])
    }

    @Test(
        "An invalid control request changes nothing and explains the error",
        arguments: [
            ("settings", #"{"lifetime":10,"rotatoin":true}"#, "rotatoin"),
            ("settings", #"{"lifetime":10,"wave_rate":2}"#, "wave_rate"),
            ("settings", #"{"lifetime":10,"outage":"weather"}"#, "weather"),
            ("settings", #"{"lifetime":1.5}"#, "lifetime"),
            ("settings", "[]", "object"),
            ("settings", "{", "JSON"),
            ("grants", #"{"grants":[{},{"nickname":"x"}]}"#, "nickname"),
            ("grants", #"{"count":-1}"#, "count"),
            ("grants/set", #"{"revoked":true}"#, "select the grant"),
            ("grants/set", #"{"sub":"unknown","revoked":true}"#, "no such grant"),
            ("weather", "{}", "route"),
        ]
    )
    func invalidRequest(route: String, body: String, message: String) async throws {
        let answer = try #require(await fixture.control(route, body))
        #expect((400...404).contains(answer.status))
        #expect(answer.error?.contains(message) == true)
        #expect(fixture.sandbox.withState { $0.settings.lifetime } == 3599)
        #expect(fixture.sandbox.withState { $0.grants.isEmpty && $0.indexByRefreshToken.isEmpty })
    }

    @Test("A null clears a setting")
    func null() async {
        await fixture.grant("1//0a")
        await fixture.control("grants/set", #"{"sub":"s1","answer":"http500","lifetime":5}"#)
        #expect(await fixture.refresh("1//0a")?.status == 500)
        await fixture.control("grants/set", #"{"sub":"s1","answer":null,"lifetime":null}"#)
        #expect(await fixture.refresh("1//0a")?.body["expires_in"] == 3599)
    }
}

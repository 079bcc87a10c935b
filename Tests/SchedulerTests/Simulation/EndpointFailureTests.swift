import GoogleOAuth
import Storage
import TestSupport
import Testing

@testable import Base

@Suite("Simulated failures of the token endpoint", .timeLimit(.minutes(10)))
struct EndpointFailureTests {
    @Test(
        "A wave of refusals for two thirds of all grants disconnects no grant",
        arguments: [
            RefreshFailure.invalidGrant, .signInRequired(code: "invalid_rapt"),
            .blocked(code: "admin_policy_enforced"),
        ]
    )
    func wave(refusal: RefreshFailure) async throws {
        let fixture = try EngineFixture(seed: 30, lifetime: .seconds(60))
        try await fixture.add(0..<100)
        // A read of the due index every ten seconds finds the grants that were recalled.
        let engine = fixture.engine(scanInterval: .seconds(10), maxRate: 10_000)
        await fixture.run(engine, for: .seconds(120), grain: .seconds(3))
        let began = fixture.time.sinceBoot
        fixture.google.answer { request in
            request.at < began + .seconds(180) && request.account % 3 != 0 ? .answer(refusal) : .grant
        }
        await fixture.run(engine, for: .seconds(60), grain: .seconds(2))
        let states = try await fixture.states()
        #expect(states.keys.allSatisfy { $0.isConnected }, "grants that ended early are recalled")
        let ends = ["disconnected", "reauth_required", "suspended"]
        let recalled = fixture.lines.of("state").count { $0["from"].map(ends.contains) ?? false }
        #expect((1...10).contains(recalled), "few grants ended early")
        await fixture.run(engine, for: .seconds(15 * 60 - 60), grain: .seconds(4))
        #expect(try await fixture.states() == [.active: 100])
        #expect(fixture.google.accountsWithoutToken().isEmpty)
        let alarms = fixture.lines.of("alarm")
        #expect(alarms.map { $0["kind"] } == ["grants_in_doubt"], "no other alarm")
        #expect(alarms.map { $0["client"] } == [EngineFixture.clientID])
    }

    @Test("Revocations within a wave are confirmed after its end, each once")
    func waveHidesTheDead() async throws {
        let fixture = try EngineFixture(seed: 31, lifetime: .seconds(60))
        try await fixture.add(0..<100)
        let engine = fixture.engine(scanInterval: .seconds(10), maxRate: 10_000)
        await fixture.run(engine, for: .seconds(120), grain: .seconds(3))
        let began = fixture.time.sinceBoot
        fixture.google.answer { request in
            let isWave = request.at < began + .seconds(180) && request.account % 3 != 0
            return isWave || request.account < 5 ? .answer(.invalidGrant) : .grant
        }
        await fixture.run(engine, for: .seconds(20 * 60), grain: .seconds(4))
        for number in 0..<100 {
            #expect(
                try await fixture.grant(number).state == (number < 5 ? .disconnected : .active),
                "account \(number)"
            )
        }
    }

    @Test("invalid_client for all: no grant changes, one alarm, and recovery without help")
    func clientFault() async throws {
        let fixture = try EngineFixture(seed: 32, lifetime: .seconds(600))
        try await fixture.add(0..<300)
        let engine = fixture.engine()
        await fixture.run(engine, for: .seconds(1200), grain: .seconds(10))
        let callsBefore = fixture.google.calls
        fixture.google.answer { _ in .answer(.clientFault(code: "invalid_client")) }
        await fixture.run(engine, for: .seconds(600))

        #expect(try await fixture.states() == [.active: 300])
        #expect(fixture.lines.of("state").isEmpty)
        #expect(fixture.lines.of("alarm").map { $0["kind"] } == ["client_fault"])
        #expect(fixture.lines.of("breaker").filter { $0["change"] == "opened" }.count == 1)
        let callsMeanwhile = fixture.google.calls - callsBefore
        #expect((60...110).contains(callsMeanwhile), "\(callsMeanwhile) calls: probes, and what was on its way")

        fixture.google.answer { _ in .grant }
        await fixture.run(engine, for: .seconds(40))
        #expect(fixture.google.accountsWithoutToken().isEmpty)
        #expect(fixture.lines.of("breaker").last?["change"] == "closed")
        #expect(fixture.lines.of("state").isEmpty)
        #expect(fixture.lines.of("alarm").count == 1)
    }

    @Test("While Google cannot verify the app no grant ends, there is one alarm, and all are refreshed just after it")
    func appNotAuthentic() async throws {
        let fixture = try EngineFixture(seed: 37, lifetime: .seconds(60))
        try await fixture.add(0..<100)
        let engine = fixture.engine(scanInterval: .seconds(2))
        await fixture.run(engine, for: .seconds(120), grain: .seconds(1))
        #expect(fixture.google.accountsWithoutToken().isEmpty)
        fixture.google.answer { _ in .answer(.appNotAuthentic) }
        // These were never refreshed.
        try await fixture.add(100..<105)
        await fixture.run(engine, for: .seconds(80))
        #expect(try await fixture.grants().allSatisfy(\.state.isConnected))
        #expect(fixture.lines.of("alarm").map { $0["kind"] } == ["client_fault"])

        fixture.google.answer { _ in .grant }
        await fixture.run(engine, for: .seconds(15))
        #expect(try await fixture.states() == [.active: 105])
        #expect(fixture.google.accountsWithoutToken().isEmpty)
        #expect(fixture.lines.of("alarm").count == 1)
        let connected = ["active", "retrying"]
        #expect(fixture.lines.of("state").allSatisfy { $0["to"].map(connected.contains) ?? false })
    }

    @Test(
        "After an outage every grant has a good token within thirty seconds",
        arguments: [(60, 20), (60, 120), (60, 600), (3600, 20), (3600, 600)]
    )
    func outage(lifetime: Int, outage: Int) async throws {
        let seed = UInt64(lifetime + outage)
        let fixture = try EngineFixture(seed: seed, lifetime: .seconds(lifetime))
        try await fixture.add(0..<100)
        let engine = fixture.engine()
        await fixture.run(engine, for: .seconds(2 * lifetime), grain: .seconds(lifetime / 60))
        #expect(fixture.google.accountsWithoutToken().isEmpty)
        fixture.google.answer { _ in .answer(.noAnswer(code: "connect", outcomeUnknown: false)) }
        await fixture.run(engine, for: .seconds(outage), grain: .milliseconds(500))
        fixture.google.answer { _ in .grant }
        await fixture.run(engine, for: .seconds(30))
        #expect(fixture.google.accountsWithoutToken().isEmpty, "seed \(seed)")
        #expect(try await fixture.grants().allSatisfy(\.state.isConnected))
        await fixture.run(engine, for: .seconds(700), grain: .seconds(10))
        #expect(try await fixture.states() == [.active: 100])
    }

    @Test("The same if one answer in twenty is an error, but never three in a row", arguments: [10, 20, 22])
    func outageAmongErrors(seed: UInt64) async throws {
        @Sendable func isDrawn(_ account: Int, _ count: Int) -> Bool {
            count > 0 && SeededRandom(seed: seed << 32 + UInt64(account << 16 + count)).nextUnit() < 0.05
        }
        let fault = FakeGoogle.Reply.answer(.endpointFault(code: "http_500"))
        let script: @Sendable (FakeGoogle.Request) -> FakeGoogle.Reply = { request in
            let isUnlucky = isDrawn(request.account, request.count)
            let wasUnlucky = isDrawn(request.account, request.count - 1) && isDrawn(request.account, request.count - 2)
            return isUnlucky && !wasUnlucky ? fault : .grant
        }
        let fixture = try EngineFixture(seed: seed, lifetime: .seconds(60))
        try await fixture.add(0..<1000)
        let engine = fixture.engine()
        fixture.google.answer(by: script)
        await fixture.run(engine, for: .seconds(80))
        #expect(fixture.google.accountsWithoutToken().isEmpty)
        fixture.google.answer { _ in fault }
        await fixture.run(engine, for: .seconds(20))
        fixture.google.answer(by: script)
        await fixture.run(engine, for: .seconds(30))
        #expect(fixture.google.accountsWithoutToken().isEmpty, "seed \(seed)")
    }

    @Test("One user's foreign token among a thousand does not stop others")
    func foreignToken() async throws {
        let fixture = try EngineFixture(seed: 34)
        try await fixture.add(0..<1000)
        fixture.google.answer { $0.account == 7 ? .answer(.clientOrForeignToken(code: "unauthorized_client")) : .grant }
        let engine = fixture.engine(maxRate: 1000)
        await fixture.run(engine, for: .seconds(20))
        await fixture.run(engine, for: .seconds(2 * 3600), grain: .seconds(60))
        for grant in try await fixture.grants() where grant.userID != "user 7" { #expect(grant.state == .active) }
        let foreign = try await fixture.grant(7)
        #expect(foreign.state == .reauthRequired && foreign.reason == .clientMismatch)
        #expect(fixture.google.account(7).requestTimes.count <= 4)
        #expect(fixture.google.accounts.filter { $0.key != 7 }.allSatisfy { $0.value.longestGap == .zero })
        #expect(fixture.google.accountsWithoutToken() == [7])
        #expect(fixture.lines.of("breaker").isEmpty)
    }

    @Test(
        "A foreign token among few healthy grants is recognised within a minute, however many grants other clients have",
        arguments: [0, 500]
    )
    func foreignTokenAmongFew(others: Int64) async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<2)
        // Their ids are before those of the others, which are large random numbers.
        try await fixture.store.database.transact { transaction in
            for number in 1_000..<1_000 + others {
                var grant = try Sample.grant(number, dueAt: start + .seconds(3000))
                grant.clientID = "other"
                try transaction.insert(grant)
            }
        }
        let engine = fixture.engine(scanInterval: .seconds(2))
        await fixture.run(engine, for: .seconds(60))
        fixture.google.answer { $0.account == 2 ? .answer(.clientOrForeignToken(code: "unauthorized_client")) : .grant }
        try await fixture.add(2..<3)
        await fixture.run(engine, for: .seconds(60))
        let grant = try await fixture.grant(2)
        #expect(grant.state == .reauthRequired && grant.reason == .clientMismatch)
        #expect(fixture.google.calls - fixture.google.account(2).requestTimes.count <= 3, "one healthy grant is asked")
    }

    @Test("While the client itself is refused, no healthy grant ends")
    func refusedClient() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<3)
        let engine = fixture.engine(scanInterval: .seconds(2))
        await fixture.run(engine, for: .seconds(60))
        fixture.google.answer { _ in .answer(.clientOrForeignToken(code: "unauthorized_client")) }
        try await fixture.add(3..<4)
        await fixture.run(engine, for: .seconds(2 * 3600))
        #expect(try await fixture.states()[.reauthRequired] == nil)
    }

    @Test("A proven grant whose token turns foreign does not stop others for long")
    func provenTurnsForeign() async throws {
        let fixture = try EngineFixture(seed: 35)
        try await fixture.add(0..<200)
        let engine = fixture.engine()
        await fixture.run(engine, for: .seconds(3600), grain: .seconds(30))
        fixture.google.answer { $0.account == 7 ? .answer(.clientOrForeignToken(code: "unauthorized_client")) : .grant }
        await fixture.run(engine, for: .seconds(2 * 3600), grain: .seconds(30))
        #expect(fixture.google.accounts.filter { $0.key != 7 }.allSatisfy { $0.value.longestGap == .zero })
        #expect(fixture.google.accountsWithoutToken() == [7])
        #expect(try await fixture.grant(7).state == .retrying)
        let opened = fixture.lines.of("breaker").filter { $0["change"] == "opened" }
        #expect(opened.isEmpty, "others succeed, so only the grant is suspected")
    }

    @Test("Throttling slows down and loses nothing")
    func throttling() async throws {
        let fixture = try EngineFixture(seed: 36)
        try await fixture.add(0..<300)
        let engine = fixture.engine()
        let began = fixture.time.sinceBoot
        fixture.google.answer { $0.at < began + .seconds(30) ? .answer(.throttled(code: "http_429")) : .grant }
        await fixture.run(engine, for: .seconds(30))
        #expect(try await fixture.grants().allSatisfy(\.state.isConnected))
        #expect(!fixture.lines.of("pacer").isEmpty)
        #expect(fixture.lines.of("breaker").isEmpty)
        await fixture.run(engine, for: .seconds(900), grain: .seconds(2))
        #expect(try await fixture.states() == [.active: 300])
        #expect(fixture.google.accountsWithoutToken().isEmpty)
    }
}

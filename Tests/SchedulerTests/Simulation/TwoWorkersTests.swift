import Crypto
import Storage
import Synchronization
import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import GoogleOAuth
@testable import Scheduler

@Suite("Two workers on one store", .timeLimit(.minutes(10)))
struct TwoWorkersTests {
    @Test("No grant is refreshed by both, and the calls are as many as for one worker", arguments: [false, true])
    func shared(isSharedByWorkers: Bool) async throws {
        let fixture = try EngineFixture(seed: 50, isSharedByWorkers: isSharedByWorkers)
        try await fixture.add(0..<300)
        let engines = [fixture.engine("first"), fixture.engine("second")]
        await fixture.run(engines, for: .seconds(4 * 3600), grain: .seconds(60))
        for (number, account) in fixture.google.accounts {
            #expect(account.maximumInFlight == 1 && account.longestGap == .zero, "account \(number)")
            #expect(
                (5...6).contains(account.requestTimes.count),
                "account \(number): \(account.requestTimes.count) calls"
            )
            let waits = zip(account.requestTimes.dropFirst(), account.requestTimes).map { $0 - $1 }
            #expect(waits.dropFirst().allSatisfy { abs($0.inSeconds - 3000) <= 61 }, "account \(number)")
        }
        #expect(try await fixture.states() == [.active: 300])
    }

    @Test("When their loops run at the same instant, they share the due grants", arguments: [false, true])
    func atOnce(isSharedByWorkers: Bool) async throws {
        let fixture = try EngineFixture(seed: 51, isSharedByWorkers: isSharedByWorkers)
        try await fixture.add(0..<400)
        let engines = [fixture.engine("first", maxRate: 5000), fixture.engine("second", maxRate: 5000)]
        await withTaskGroup { group in
            for engine in engines { group.addTask { _ = await engine.runUntilQuiet() } }
        }
        await fixture.run(engines, for: .seconds(120))
        #expect(fixture.google.accounts.count == 400)
        #expect(fixture.google.accounts.values.allSatisfy { $0.requestTimes.count == 1 && $0.maximumInFlight == 1 })
    }

    @Test("A worker that paused before it sent a request, and wakes minutes later, does not send it")
    func frozenBeforeSending() async throws {
        let fixture = try EngineFixture(seed: 52, rotates: true)
        try await fixture.add(0..<20)
        fixture.google.answer { _ in .freezeBeforeSending }
        let frozen = fixture.engine("frozen")
        _ = await frozen.runLoopIteration()
        await fixture.google.waitUntilHolding(20)

        fixture.google.answer { _ in .grant }
        let other = fixture.engine("other")
        await fixture.run(other, for: .seconds(290), grain: .seconds(2))
        #expect(fixture.google.calls == 20)
        fixture.google.release()
        await frozen.waitUntilIdle()
        #expect(fixture.google.calls == 20, "the worker that woke up sends nothing")
        await fixture.run([frozen, other], for: .seconds(4000), grain: .seconds(10))
        #expect(fixture.google.accounts.values.allSatisfy { $0.maximumInFlight == 1 && $0.longestGap == .zero })
        #expect(try await fixture.states() == [.active: 20])
        #expect(try await fixture.accountsWithLostToken().isEmpty)
    }

    @Test("A late answer of a worker that paused does not change another worker's result", arguments: [true, false])
    func frozenAfterSending(answersInvalid: Bool) async throws {
        let fixture = try EngineFixture(seed: 53, rotates: true)
        try await fixture.add(0..<20)
        fixture.google.answer { $0.count == 1 ? .hold : .grant }
        let frozen = fixture.engine("frozen")
        _ = await frozen.runLoopIteration()
        await fixture.google.waitUntilHolding(20)

        let other = fixture.engine("other")
        await fixture.run(other, for: .seconds(290), grain: .seconds(2))
        let before = try await fixture.grants()
        #expect(before.allSatisfy { $0.state == .active && $0.generation == 2 })
        fixture.google.release(answersInvalid ? .invalidGrant : .endpointFault(code: "http_503"))
        await frozen.waitUntilIdle()
        #expect(try await fixture.grants() == before)
        await fixture.run([frozen, other], for: .seconds(4000), grain: .seconds(10))
        #expect(try await fixture.states() == [.active: 20])
        #expect(fixture.google.accounts.values.allSatisfy { $0.longestGap == .zero })
    }

    @Test("After an outage of the store a worker leaves the others the duration of a lease to store what they hold")
    func outage() async throws {
        let fixture = try EngineFixture(seed: 55, rotates: true)
        try await fixture.add(0..<20)
        fixture.google.answer { _ in .hold }
        let holding = fixture.engine("holding")
        _ = await holding.runLoopIteration()
        await fixture.google.waitUntilHolding(20)

        let other = fixture.engine("other")
        _ = await other.runLoopIteration()
        fixture.time.advance(by: .seconds(80))
        await fixture.run(other, for: .seconds(20), grain: .seconds(2))
        await holding.renewLeases()
        await fixture.run(other, for: .seconds(20), grain: .seconds(2))
        #expect(fixture.google.calls == 20, "the leases were renewed in time")

        fixture.time.advance(by: .seconds(80))
        fixture.google.answer { _ in .grant }
        await fixture.run(other, for: .seconds(20), grain: .seconds(2))
        #expect(fixture.google.calls == 20, "the holding worker has not had the time yet")
        await fixture.run(other, for: .seconds(70), grain: .seconds(2))
        #expect(fixture.google.calls == 40, "the other worker counts as dead")
        fixture.google.release()
        await holding.waitUntilIdle()
    }

    @Test("A server that is read-only for a while has been away, although it answers reads")
    func readOnly() async throws {
        let fixture = try EngineFixture(seed: 56, rotates: true)
        try await fixture.add(0..<20)
        fixture.google.answer { _ in .hold }
        let holding = fixture.engine("holding")
        _ = await holding.runLoopIteration()
        await fixture.google.waitUntilHolding(20)
        let other = fixture.engine("other")
        await fixture.run(other, for: .seconds(5), grain: .seconds(1))

        // The answers come, and cannot be stored. The leases cannot be renewed.
        fixture.store.setReadOnly(true)
        fixture.google.answer { _ in .grant }
        fixture.google.release()
        await fixture.run(other, for: .seconds(50), grain: .seconds(2))
        fixture.store.setReadOnly(false)
        await fixture.run(other, for: .seconds(20), grain: .seconds(2))
        #expect(fixture.google.calls == 20, "no grant is asked for whose answer the other worker still holds")
        await fixture.waitUntilIdle(holding)
        #expect(fixture.google.accounts.values.allSatisfy { $0.requestTimes.count == 1 })
        #expect(try await fixture.accountsWithLostToken().isEmpty)
    }

    @Test("A worker that starts just after a read-only time asks for no grant whose answer another worker still holds")
    func startAfterReadOnly() async throws {
        let fixture = try EngineFixture(seed: 59, rotates: true, isSharedByWorkers: true)
        try await fixture.add(0..<20)
        fixture.google.answer { _ in .hold }
        let holding = fixture.engine("holding")
        _ = await holding.runLoopIteration()
        await fixture.google.waitUntilHolding(20)

        fixture.store.setReadOnly(true)
        fixture.google.answer { _ in .grant }
        fixture.google.release()
        fixture.time.advance(by: .seconds(50))
        fixture.store.setReadOnly(false)
        let starting = fixture.engine("starting")
        await starting.daemonBegins(waitingSince: fixture.time.sinceBoot)
        await fixture.run(starting, for: .seconds(20), grain: .seconds(2))
        #expect(fixture.google.calls == 20, "no grant is asked for whose answer the other worker still holds")
        await fixture.waitUntilIdle(holding)
        #expect(fixture.google.accounts.values.allSatisfy { $0.requestTimes.count == 1 })
        #expect(try await fixture.accountsWithLostToken().isEmpty)
    }

    @Test("The grants of a killed worker wait for its leases, and on a shared store for as long after the next start")
    func startAfterKill() async throws {
        for (isShared, lease, tooEarly) in [(false, 32, 26), (true, 58, 52)] {
            let fixture = try EngineFixture(seed: 60, isSharedByWorkers: isShared)
            try await fixture.add(0..<20)
            fixture.google.answer { _ in .hold }
            _ = await fixture.engine("killed").runLoopIteration()
            await fixture.google.waitUntilHolding(20)
            try await fixture.add(20..<25)
            fixture.google.answer { _ in .grant }

            fixture.time.advance(by: .seconds(25))
            let next = fixture.engine("next", scanInterval: .seconds(2))
            await next.daemonBegins(waitingSince: fixture.time.sinceBoot)
            await fixture.run(next, for: .seconds(tooEarly - 25))
            #expect(fixture.google.calls == 25, "free grants are claimed at once")
            await fixture.run(next, for: .seconds(lease - tooEarly), grain: .seconds(1))
            #expect(fixture.google.calls == 45)
            fixture.google.release()
        }
    }

    @Test("A pass on a shared store takes over the grants of a killed worker as soon as its leases have ended")
    func passAfterKill() async throws {
        let fixture = try EngineFixture(seed: 61, isSharedByWorkers: true)
        try await fixture.add(0..<20)
        fixture.google.answer { _ in .hold }
        _ = await fixture.engine("killed").runLoopIteration()
        await fixture.google.waitUntilHolding(20)
        fixture.google.answer { _ in .grant }
        fixture.time.advance(by: Lease.span)
        let summary = try await fixture.engine("pass").runPass(within: .seconds(60))
        #expect(summary.refreshed == 20)
        fixture.google.release()
    }

    @Test("A claim of nothing is no sign that the store takes writes")
    func emptyClaim() async throws {
        let fixture = try EngineFixture(seed: 62)
        try await fixture.add(0..<1)
        fixture.google.answer { _ in .hold }
        _ = await fixture.engine("holding").runLoopIteration()
        await fixture.google.waitUntilHolding(1)
        let other = fixture.engine("other", scanInterval: .seconds(2))
        for _ in 0..<20 {
            fixture.time.advance(by: .seconds(2))
            _ = await other.runUntilQuiet()
        }
        #expect(fixture.store.claims > 2, "the other worker tries")
        #expect(fixture.google.calls == 1)
        fixture.google.release()
    }

    @Test("A worker that alone gets no answers leaves its grants to the other until the first answer")
    func cutOff() async throws {
        let fixture = try EngineFixture(seed: 57, lifetime: .seconds(600), rotates: true)
        try await fixture.add(0..<100)
        let way = BreakableWay(to: fixture.google)
        let engines = [
            fixture.engine("a", scanInterval: .seconds(2), endpoint: way),
            fixture.engine("b", scanInterval: .seconds(2)),
        ]
        try await share(among: engines, of: fixture)
        await fixture.run(engines, for: .seconds(1200), grain: .seconds(1))
        #expect(fixture.google.accountsWithoutToken().isEmpty)

        way.isBroken = true
        for _ in 0..<12 {
            await fixture.run(engines, for: .seconds(100), grain: .seconds(1))
            #expect(fixture.google.accountsWithoutToken().isEmpty, "the other worker takes the grants")
        }
        #expect(await engines[0].leavesGrantsToOthers)
        #expect(await !engines[1].leavesGrantsToOthers)
        let alarm = try #require(engines[0].currentAlarms.first)
        #expect(alarm.kind == .endpointOutOfReach && alarm.text.contains("worker a "))
        #expect(engines[1].currentAlarms.isEmpty)
        let lost = way.unanswered
        await fixture.run(engines, for: .seconds(100), grain: .seconds(1))
        #expect((5...11).contains(way.unanswered - lost), "one grant in ten seconds is tried")

        way.isBroken = false
        await fixture.run(engines, for: .seconds(1200), grain: .seconds(1))
        #expect(await !engines[0].leavesGrantsToOthers)
        #expect(engines[0].currentAlarms.isEmpty, "the alarm ends with its cause")
        #expect(fixture.google.accounts.values.allSatisfy { $0.longestGap == .zero })
        #expect(try await fixture.states() == [.active: 100])
    }

    /// Makes two engines share the grants.
    private func share(among engines: [RefreshEngine], of fixture: EngineFixture) async throws {
        let key = fixture.vault.ring.current.sealingKeyID
        let reports = ["a", "b"].map { WorkerReport(id: $0, keyIDs: [key], sealingKeyID: key, isRefreshing: true) }
        for engine in engines { await engine.updateShare(among: reports) }
    }

    @Test("Workers that both get no answers keep their grants, and none of them raises the alarm of one")
    func bothCutOff() async throws {
        let fixture = try EngineFixture(seed: 58, lifetime: .seconds(600), rotates: true)
        try await fixture.add(0..<100)
        let way = BreakableWay(to: fixture.google)
        let engines = ["a", "b"].map { fixture.engine($0, scanInterval: .seconds(2), endpoint: way) }
        try await share(among: engines, of: fixture)
        await fixture.run(engines, for: .seconds(1200), grain: .seconds(1))
        way.isBroken = true
        await fixture.run(engines, for: .seconds(300), grain: .seconds(1))
        for engine in engines {
            #expect(await !engine.leavesGrantsToOthers)
            #expect(engine.currentAlarms.allSatisfy { $0.kind == .endpointFailing })
        }
    }

    @Test("A breaker that one worker opened holds the other back too", arguments: [false, true])
    func sharedBreaker(isSharedByWorkers: Bool) async throws {
        let fixture = try EngineFixture(
            seed: 54,
            lifetime: .seconds(600),
            isSharedByWorkers: isSharedByWorkers
        )
        try await fixture.add(0..<200)
        let engines = [
            fixture.engine("first", scanInterval: .seconds(2)), fixture.engine("second", scanInterval: .seconds(2)),
        ]
        await fixture.run(engines, for: .seconds(700), grain: .seconds(5))
        let before = fixture.google.calls
        fixture.google.answer { _ in .answer(.clientFault(code: "invalid_client")) }
        await fixture.run(engines, for: .seconds(300))
        let calls = fixture.google.calls - before
        #expect((8...60).contains(calls), "\(calls) calls: the probes of both together are those of one")
        #expect(fixture.lines.of("alarm").count == 1)
        #expect(try await fixture.states() == [.active: 200])
        fixture.google.answer { _ in .grant }
        await fixture.run(engines, for: .seconds(60))
        #expect(fixture.google.accountsWithoutToken().isEmpty)
    }
}

/// A worker's way to the token endpoint, which a test breaks: requests then end without an answer, and are not
/// processed.
private final class BreakableWay: AnsweringEndpoint {
    private struct State {
        var isBroken = false
        var unanswered = 0
    }

    private let endpoint: FakeGoogle
    private let state = Mutex(State())

    init(to endpoint: FakeGoogle) {
        self.endpoint = endpoint
    }

    var isBroken: Bool {
        get { state.withLock(\.isBroken) }
        set { state.withLock { $0.isBroken = newValue } }
    }

    /// The number of requests that had no answer.
    var unanswered: Int { state.withLock(\.unanswered) }

    func refresh(
        _ token: Secret,
        client: OAuthClientCredentials,
        mayStillSend: @escaping @Sendable () -> Bool
    ) async -> ParsedRefreshResponse {
        let isLost = state.withLock { state in
            if state.isBroken { state.unanswered += 1 }
            return state.isBroken
        }
        guard !isLost else {
            return ParsedRefreshResponse(verdict: .failed(.noAnswer(code: "connection_failed", outcomeUnknown: false)))
        }
        return await endpoint.refresh(token, client: client, mayStillSend: mayStillSend)
    }

    func revoke(_ token: Secret, mayStillSend: @escaping @Sendable () -> Bool) async -> RevocationResponse {
        await endpoint.revoke(token, mayStillSend: mayStillSend)
    }
}

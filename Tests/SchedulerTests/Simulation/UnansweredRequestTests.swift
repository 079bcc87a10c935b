import Crypto
import GoogleOAuth
import SchedulerTestSupport
import TestSupport
import Testing

@testable import Base
@testable import Scheduler
@testable import Storage

@Suite("Events while a request is unanswered", .timeLimit(.minutes(10)))
struct UnansweredRequestTests {
    /// Returns a fixture whose one grant is proven, due again, and has a refresh in flight that is held.
    private func holding(rotates: Bool) async throws -> (EngineFixture, RefreshEngine, Grant) {
        let fixture = try EngineFixture(rotates: rotates)
        try await fixture.add(0..<1)
        let engine = fixture.engine()
        await fixture.run(engine, for: .seconds(5))
        try await fixture.change(0) { grant in
            grant.reschedule(to: start)
            return []
        }
        fixture.google.answer { _ in .hold }
        fixture.time.advance(by: .seconds(61))
        _ = await engine.runLoopIteration()
        await fixture.google.waitUntilHolding(1)
        return (fixture, engine, try await fixture.grant(0))
    }

    @Test("A reconnect, then invalid_grant for the old token: the new grant stays active")
    func reconnectWins() async throws {
        let (fixture, engine, before) = try await holding(rotates: false)
        let newToken = try fixture.refreshToken(0, version: 5, for: before.id)
        let now = fixture.time.now
        try await fixture.change(0) { grant in
            grant.reconnect(
                IncomingTokens(clientID: EngineFixture.clientID, refreshToken: newToken),
                replacesRefreshToken: true,
                discardsStored: false,
                dueAt: now + .seconds(60),
                at: now
            )
        }
        fixture.google.release(.invalidGrant)
        await engine.waitUntilIdle()
        let grant = try await fixture.grant(0)
        #expect(grant.state == .active && grant.refreshToken == newToken)
        #expect(grant.generation == before.generation + 1)
        #expect(grant.lease == nil)
        #expect(fixture.lines.of("refresh").last?["outcome"] == "void")

        fixture.google.answer { _ in .grant }
        await fixture.run(engine, for: .seconds(120))
        #expect(try await fixture.grant(0).state == .active)
        #expect(fixture.google.account(0).usedVersion == 5, "the new token is used")
    }

    @Test("A reconnect without a refresh token, then a rotated one: the rotated one is stored")
    func rotationSurvivesReconnect() async throws {
        let (fixture, engine, before) = try await holding(rotates: true)
        let now = fixture.time.now
        let appToken = Grant.AccessToken(
            sealed: try fixture.vault.seal(accessToken: Secret("from the app"), for: before.id),
            obtainedAt: now,
            expiresAt: now + .seconds(1800)
        )
        try await fixture.change(0) { grant in
            grant.reconnect(
                IncomingTokens(clientID: EngineFixture.clientID, accessToken: appToken),
                replacesRefreshToken: false,
                discardsStored: false,
                dueAt: now + .seconds(900),
                at: now
            )
        }
        fixture.google.release()
        await engine.waitUntilIdle()
        let grant = try await fixture.grant(0)
        #expect(grant.state == .active)
        #expect(try fixture.vault.openRefreshToken(of: grant)?.reveal() == "refresh-0-2")
        #expect(try fixture.vault.openAccessToken(of: grant)?.reveal() == fixture.google.account(0).accessToken)
        #expect(try #require(grant.dueAt) > now + .seconds(900), "the due time follows the later token")
    }

    @Test("A requested disconnection is not undone by a good answer", arguments: [true, false])
    func disconnectionWins(rotates: Bool) async throws {
        let (fixture, engine, _) = try await holding(rotates: rotates)
        let now = fixture.time.now
        try await fixture.change(0) { $0.disconnectByRequest(revokes: false, at: now) }
        fixture.google.release()
        await engine.waitUntilIdle()
        await fixture.run(engine, for: .seconds(65))
        let grant = try await fixture.grant(0)
        #expect(grant.state == .disconnected && grant.reason == .userRequest)
        #expect(grant.refreshToken == nil && grant.accessToken == nil && grant.dueAt == nil)
    }

    @Test(
        "A request with an unknown outcome is repeated once the server has had the time to end it",
        arguments: [RefreshFailure.noAnswer(code: "timeout"), .givenUp(code: "shut_down")]
    )
    func unknownOutcome(verdict: RefreshFailure) async throws {
        let (fixture, engine, _) = try await holding(rotates: true)
        fixture.google.answer { _ in .grant }
        fixture.google.release(verdict)
        await engine.waitUntilIdle()
        let other = fixture.engine("other", scanInterval: .seconds(2))
        let failedAt = fixture.time.sinceBoot
        #expect(try await fixture.grant(0).state == .retrying)
        await fixture.run(other, for: .seconds(11))
        // Nor does a caller, or an operator, cause another request before.
        let caller = Task { try await other.freshToken(of: "user 0", minimumLife: .seconds(4000)) }
        try await fixture.change(0) { grant in
            grant.reschedule(to: start)
            return []
        }
        await fixture.run(other, for: .seconds(60))
        _ = try? await caller.value
        let times = fixture.google.account(0).requestTimes
        try #require(times.count == 3)
        #expect(times[2] - failedAt >= .seconds(29) && times[2] - failedAt <= .seconds(33))
        #expect(try await fixture.grant(0).state == .active)
    }

    @Test("A lease is renewed while its answer is awaited, and no other worker takes the grant")
    func renewal() async throws {
        let (fixture, engine, _) = try await holding(rotates: false)
        let other = fixture.engine("other")
        for _ in 0..<12 {
            fixture.time.advance(by: .seconds(10))
            await engine.renewLeases()
            _ = await other.runUntilQuiet()
        }
        #expect(fixture.google.account(0).requestTimes.count == 2)
        fixture.google.release()
        await engine.waitUntilIdle()
        #expect(try await fixture.grant(0).state == .active)
        #expect(fixture.google.account(0).maximumInFlight == 1)
    }
}

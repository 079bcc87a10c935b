import Clocks
import GoogleOAuth
import RefreshEngine
import Secrets
import Store
import Testing

@Suite("Events while an answer is in flight", .timeLimit(.minutes(10)))
struct HeldAnswerTests {
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
                switchesAccount: false,
                dueAt: now + .seconds(60),
                at: now
            )
        }
        fixture.google.release(.invalidGrant)
        await engine.settleDown()
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
                switchesAccount: false,
                dueAt: now + .seconds(900),
                at: now
            )
        }
        fixture.google.release()
        await engine.settleDown()
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
        await engine.settleDown()
        let grant = try await fixture.grant(0)
        #expect(grant.state == .disconnected && grant.reason == .userRequest)
        #expect(grant.refreshToken == nil && grant.accessToken == nil && grant.dueAt == nil)
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
        #expect(fixture.google.account(0).asked.count == 2)
        fixture.google.release()
        await engine.settleDown()
        #expect(try await fixture.grant(0).state == .active)
        #expect(fixture.google.account(0).mostInFlight == 1)
    }
}

@Suite("Two workers on one store", .timeLimit(.minutes(10)))
struct TwoWorkersTests {
    @Test("No grant is refreshed by both, and the calls are as many as for one worker")
    func shared() async throws {
        let fixture = try EngineFixture(seed: 50)
        try await fixture.add(0..<300)
        let engines = [fixture.engine("first"), fixture.engine("second")]
        await fixture.run(engines, for: .seconds(4 * 3600), grain: .seconds(60))
        for (number, account) in fixture.google.accounts {
            #expect(account.mostInFlight == 1 && account.longestGap == .zero, "account \(number)")
            #expect((5...6).contains(account.asked.count), "account \(number): \(account.asked.count) calls")
            let waits = zip(account.asked.dropFirst(), account.asked).map { $0 - $1 }
            #expect(waits.dropFirst().allSatisfy { abs($0.inSeconds - 3000) <= 61 }, "account \(number)")
        }
        #expect(try await fixture.states() == [.active: 300])
    }

    @Test("When their loops run at the same instant, they share the due grants")
    func atOnce() async throws {
        let fixture = try EngineFixture(seed: 51)
        try await fixture.add(0..<400)
        let engines = [fixture.engine("first", maxRate: 5000), fixture.engine("second", maxRate: 5000)]
        await withTaskGroup { group in
            for engine in engines { group.addTask { _ = await engine.runUntilQuiet() } }
        }
        await fixture.run(engines, for: .seconds(120))
        #expect(fixture.google.accounts.count == 400)
        #expect(fixture.google.accounts.values.allSatisfy { $0.asked.count == 1 && $0.mostInFlight == 1 })
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
        await frozen.settleDown()
        #expect(fixture.google.calls == 20, "the worker that woke up sends nothing")
        await fixture.run([frozen, other], for: .seconds(4000), grain: .seconds(10))
        #expect(fixture.google.accounts.values.allSatisfy { $0.mostInFlight == 1 && $0.longestGap == .zero })
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
        await frozen.settleDown()
        #expect(try await fixture.grants() == before)
        await fixture.run([frozen, other], for: .seconds(4000), grain: .seconds(10))
        #expect(try await fixture.states() == [.active: 20])
        #expect(fixture.google.accounts.values.allSatisfy { $0.longestGap == .zero })
    }

    @Test("A breaker that one worker opened holds the other back too")
    func sharedBreaker() async throws {
        let fixture = try EngineFixture(seed: 54, lifetime: .seconds(600))
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

import Clocks
import GoogleOAuth
import RefreshEngine
import Secrets
import Store
import Testing

@Suite("Events while an answer is in flight", .timeLimit(.minutes(10)))
struct HeldAnswerTests {
    /// Returns a world whose one grant is proven, due again, and has a refresh in flight that is held.
    private func holding(rotates: Bool) async throws -> (World, RefreshEngine, Grant) {
        let world = try World(rotates: rotates)
        try await world.add(0..<1)
        let engine = world.engine()
        await world.run(engine, for: .seconds(5))
        try await world.change(0) { grant in
            grant.reschedule(to: start)
            return []
        }
        world.google.answer { _ in .hold }
        world.time.advance(by: .seconds(61))
        _ = await engine.runLoopIteration()
        await world.google.waitUntilHolding(1)
        return (world, engine, try await world.grant(0))
    }

    @Test("A reconnect, then invalid_grant for the old token: the new grant stays active")
    func reconnectWins() async throws {
        let (world, engine, before) = try await holding(rotates: false)
        let newToken = try world.refreshToken(0, version: 5, for: before.id)
        let now = world.time.now
        try await world.change(0) { grant in
            grant.reconnect(
                IncomingTokens(clientID: World.clientID, refreshToken: newToken),
                bringsOtherRefreshToken: true,
                switchesAccount: false,
                dueAt: now + .seconds(60),
                at: now
            )
        }
        world.google.release(.invalidGrant)
        await engine.settleDown()
        let grant = try await world.grant(0)
        #expect(grant.state == .active && grant.refreshToken == newToken)
        #expect(grant.generation == before.generation + 1)
        #expect(grant.lease == nil)
        #expect(world.lines.of("refresh").last?["outcome"] == "void")

        world.google.answer { _ in .grant }
        await world.run(engine, for: .seconds(120))
        #expect(try await world.grant(0).state == .active)
        #expect(world.google.account(0).usedVersion == 5, "the new token is used")
    }

    @Test("A reconnect without a refresh token, then a rotated one: the rotated one is stored")
    func rotationSurvivesReconnect() async throws {
        let (world, engine, before) = try await holding(rotates: true)
        let now = world.time.now
        let appToken = Grant.AccessToken(
            sealed: try world.vault.seal(accessToken: Secret("from the app"), for: before.id),
            obtainedAt: now,
            expiresAt: now + .seconds(1800)
        )
        try await world.change(0) { grant in
            grant.reconnect(
                IncomingTokens(clientID: World.clientID, accessToken: appToken),
                bringsOtherRefreshToken: false,
                switchesAccount: false,
                dueAt: now + .seconds(900),
                at: now
            )
        }
        world.google.release()
        await engine.settleDown()
        let grant = try await world.grant(0)
        #expect(grant.state == .active)
        #expect(try world.vault.openRefreshToken(of: grant)?.reveal() == "refresh-0-2")
        #expect(try world.vault.openAccessToken(of: grant)?.reveal() == world.google.account(0).accessToken)
        #expect(try #require(grant.dueAt) > now + .seconds(900), "the due time follows the later token")
    }

    @Test("A requested disconnection is not undone by a good answer", arguments: [true, false])
    func disconnectionWins(rotates: Bool) async throws {
        let (world, engine, _) = try await holding(rotates: rotates)
        let now = world.time.now
        try await world.change(0) { $0.disconnectByRequest(revokes: false, at: now) }
        world.google.release()
        await engine.settleDown()
        let grant = try await world.grant(0)
        #expect(grant.state == .disconnected && grant.reason == .userRequest)
        #expect(grant.refreshToken == nil && grant.accessToken == nil && grant.dueAt == nil)
    }

    @Test("A lease is renewed while its answer is awaited, and no other worker takes the grant")
    func renewal() async throws {
        let (world, engine, _) = try await holding(rotates: false)
        let other = world.engine("other")
        for _ in 0..<12 {
            world.time.advance(by: .seconds(10))
            await engine.renewLeases()
            _ = await other.runUntilQuiet()
        }
        #expect(world.google.account(0).asked.count == 2)
        world.google.release()
        await engine.settleDown()
        #expect(try await world.grant(0).state == .active)
        #expect(world.google.account(0).mostInFlight == 1)
    }
}

@Suite("Two workers on one store", .timeLimit(.minutes(10)))
struct TwoWorkersTests {
    @Test("No grant is refreshed by both, and the calls are as many as for one worker")
    func shared() async throws {
        let world = try World(seed: 50)
        try await world.add(0..<300)
        let engines = [world.engine("first"), world.engine("second")]
        await world.run(engines, for: .seconds(4 * 3600), grain: .seconds(60))
        for (number, account) in world.google.accounts {
            #expect(account.mostInFlight == 1 && account.longestGap == .zero, "account \(number)")
            #expect((5...6).contains(account.asked.count), "account \(number): \(account.asked.count) calls")
            let waits = zip(account.asked.dropFirst(), account.asked).map { $0 - $1 }
            #expect(waits.dropFirst().allSatisfy { abs($0.inSeconds - 3000) <= 61 }, "account \(number)")
        }
        #expect(try await world.states() == [.active: 300])
    }

    @Test("When their loops run at the same instant, they share the due grants")
    func atOnce() async throws {
        let world = try World(seed: 51)
        try await world.add(0..<400)
        let engines = [world.engine("first", maxRate: 5000), world.engine("second", maxRate: 5000)]
        await withTaskGroup { group in
            for engine in engines { group.addTask { _ = await engine.runUntilQuiet() } }
        }
        await world.run(engines, for: .seconds(120))
        #expect(world.google.accounts.count == 400)
        #expect(world.google.accounts.values.allSatisfy { $0.asked.count == 1 && $0.mostInFlight == 1 })
    }

    @Test("A worker that paused before it sent a request, and wakes minutes later, does not send it")
    func frozenBeforeSending() async throws {
        let world = try World(seed: 52, rotates: true)
        try await world.add(0..<20)
        world.google.answer { _ in .freezeBeforeSending }
        let frozen = world.engine("frozen")
        _ = await frozen.runLoopIteration()
        await world.google.waitUntilHolding(20)

        world.google.answer { _ in .grant }
        let other = world.engine("other")
        await world.run(other, for: .seconds(290), grain: .seconds(2))
        #expect(world.google.calls == 20)
        world.google.release()
        await frozen.settleDown()
        #expect(world.google.calls == 20, "the worker that woke up sends nothing")
        await world.run([frozen, other], for: .seconds(4000), grain: .seconds(10))
        #expect(world.google.accounts.values.allSatisfy { $0.mostInFlight == 1 && $0.longestGap == .zero })
        #expect(try await world.states() == [.active: 20])
        #expect(try await world.accountsWithLostToken().isEmpty)
    }

    @Test("A late answer of a worker that paused does not change another worker's result", arguments: [true, false])
    func frozenAfterSending(answersInvalid: Bool) async throws {
        let world = try World(seed: 53, rotates: true)
        try await world.add(0..<20)
        world.google.answer { $0.count == 1 ? .hold : .grant }
        let frozen = world.engine("frozen")
        _ = await frozen.runLoopIteration()
        await world.google.waitUntilHolding(20)

        let other = world.engine("other")
        await world.run(other, for: .seconds(290), grain: .seconds(2))
        let before = try await world.grants()
        #expect(before.allSatisfy { $0.state == .active && $0.generation == 2 })
        world.google.release(answersInvalid ? .invalidGrant : .endpointFault(code: "http_503"))
        await frozen.settleDown()
        #expect(try await world.grants() == before)
        await world.run([frozen, other], for: .seconds(4000), grain: .seconds(10))
        #expect(try await world.states() == [.active: 20])
        #expect(world.google.accounts.values.allSatisfy { $0.longestGap == .zero })
    }

    @Test("A breaker that one worker opened holds the other back too")
    func sharedBreaker() async throws {
        let world = try World(seed: 54, lifetime: .seconds(600))
        try await world.add(0..<200)
        let engines = [
            world.engine("first", scanInterval: .seconds(2)), world.engine("second", scanInterval: .seconds(2)),
        ]
        await world.run(engines, for: .seconds(700), grain: .seconds(5))
        let before = world.google.calls
        world.google.answer { _ in .answer(.clientFault(code: "invalid_client")) }
        await world.run(engines, for: .seconds(300))
        let calls = world.google.calls - before
        #expect((8...60).contains(calls), "\(calls) calls: the probes of both together are those of one")
        #expect(world.lines.of("alarm").count == 1)
        #expect(try await world.states() == [.active: 200])
        world.google.answer { _ in .grant }
        await world.run(engines, for: .seconds(60))
        #expect(world.google.accountsWithoutToken().isEmpty)
    }
}

import Clocks
import GoogleOAuth
import RefreshEngine
import Secrets
import Store
import Testing

@Suite("A token for a caller", .timeLimit(.minutes(10)))
struct VendingTests {
    @Test("A thousand callers at once cost one call, and get the same token")
    func singleRefresh() async throws {
        let world = try World()
        try await world.add(0..<1)
        world.google.answer { _ in .hold }
        let engine = world.engine()
        let tokens = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<1000 {
                group.addTask { try await engine.freshToken(of: "user 0", minimumLife: .zero).accessToken.reveal() }
            }
            await world.google.waitUntilHolding(1)
            world.google.release()
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(tokens == [world.google.account(0).accessToken])
        #expect(world.google.calls == 1)
    }

    @Test("A caller joins a refresh that the engine has started")
    func joins() async throws {
        let world = try World()
        try await world.add(0..<1)
        world.google.answer { _ in .hold }
        let engine = world.engine()
        _ = await engine.runLoopIteration()
        await world.google.waitUntilHolding(1)
        async let token = engine.freshToken(of: "user 0", minimumLife: .zero)
        world.google.release()
        #expect(try await token.accessToken.reveal() == world.google.account(0).accessToken)
        #expect(world.google.calls == 1)
    }

    @Test("A stored token with enough life left is served without a call")
    func stored() async throws {
        let world = try World()
        try await world.add(0..<1)
        let engine = world.engine()
        let first = try await engine.freshToken(of: "user 0", minimumLife: .seconds(60))
        world.time.advance(by: .seconds(1000))
        let second = try await engine.freshToken(of: "user 0", minimumLife: .seconds(2599))
        #expect(second.accessToken == first.accessToken && second.warning == nil)
        #expect(second.expiresAt == start + .seconds(3600) && second.type == "Bearer")
        #expect(world.google.calls == 1)
        let third = try await engine.freshToken(of: "user 0", minimumLife: .seconds(2600))
        #expect(third.accessToken != first.accessToken)
        #expect(world.google.calls == 2)
    }

    @Test("A token with enough life left carries a warning while the grant's refreshes fail")
    func servesWithWarning() async throws {
        let world = try World()
        try await world.add(0..<1)
        let engine = world.engine()
        #expect(try await engine.freshToken(of: "user 0", minimumLife: .zero).warning == nil)
        let now = world.time.now
        try await world.memory.transact { transaction in
            guard var grant = try transaction.grant(ofUser: "user 0") else { return }
            _ = grant.retry(reason: GrantReason(rawValue: "http_503"), dueAt: now + .seconds(5), at: now)
            try transaction.update(grant)
        }
        #expect(try await engine.freshToken(of: "user 0", minimumLife: .zero).warning == "http_503")
    }

    @Test("A request for more life than Google gives costs one call, not a series")
    func moreThanGoogleGives() async throws {
        let world = try World()
        try await world.add(0..<1)
        let token = try await world.engine().freshToken(of: "user 0", minimumLife: .seconds(9_999_999))
        #expect(token.expiresAt == start + .seconds(3600))
        #expect(world.google.calls == 1)
    }

    @Test("While another worker has the grant, the caller waits for its result")
    func otherWorker() async throws {
        let world = try World()
        try await world.add(0..<1)
        world.google.answer { _ in .hold }
        let other = world.engine("other")
        _ = await other.runLoopIteration()
        await world.google.waitUntilHolding(1)
        let engine = world.engine()
        async let token = engine.freshToken(of: "user 0", minimumLife: .zero)
        await world.time.sleepers(atLeast: 1)
        world.google.release()
        await other.settleDown()
        world.time.advance(by: .milliseconds(100))
        #expect(try await token.accessToken.reveal() == world.google.account(0).accessToken)
        #expect(world.google.calls == 1)
    }

    @Test("An unknown user is unknown")
    func unknownUser() async throws {
        let world = try World()
        await #expect(throws: VendingFailure.unknownUser) {
            try await world.engine().freshToken(of: "nobody", minimumLife: .zero)
        }
    }

    @Test(
        "A grant that shows as disconnected is refused with its state, reason and time, and never called",
        arguments: [
            (RefreshVerdict.invalidGrant, GrantState.disconnected, "invalid_grant"),
            (.signInRequired(code: "invalid_rapt"), .reauthRequired, "invalid_rapt"),
            (.blocked(code: "policy_enforced"), .suspended, "policy_enforced"),
        ]
    )
    func refused(verdict: RefreshVerdict, state: GrantState, reason: String) async throws {
        let world = try World()
        try await world.add(0..<1)
        world.google.answer { _ in .answer(verdict) }
        let engine = world.engine()
        let expected = VendingFailure.refused(state: state, reason: GrantReason(rawValue: reason), since: start)
        for _ in 0..<3 {
            await #expect(throws: expected) { try await engine.freshToken(of: "user 0", minimumLife: .zero) }
        }
        #expect(world.google.calls == 1)
    }

    @Test(
        "While refreshing fails the old token is served with a warning, until it expires",
        arguments: [
            RefreshVerdict.noAnswer(code: "timeout"), .endpointFault(code: "http_503"), .throttled(code: "http_429"),
            .unknown(code: "new"), .notJSON, .flawed(code: "flawed_answer", rotated: nil),
        ]
    )
    func oldToken(verdict: RefreshVerdict) async throws {
        let world = try World()
        try await world.add(0..<1)
        let engine = world.engine()
        let first = try await engine.freshToken(of: "user 0", minimumLife: .zero)
        world.google.answer { _ in .answer(verdict) }
        world.time.advance(by: .seconds(3000))
        let old = try await engine.freshToken(of: "user 0", minimumLife: .seconds(1800))
        #expect(old.accessToken == first.accessToken)
        #expect(old.warning == verdict.code)
        world.time.advance(by: .seconds(600))
        await #expect(throws: VendingFailure.unavailable(reason: verdict.code)) {
            try await engine.freshToken(of: "user 0", minimumLife: .zero)
        }
        #expect(world.google.calls == 3)
    }

    @Test("However often callers ask while refreshing fails, Google is asked once in ten seconds, and then again")
    func failingRefreshIsNotHammered() async throws {
        let world = try World()
        try await world.add(0..<1)
        let engine = world.engine()
        world.google.answer { _ in .answer(.endpointFault(code: "http_500")) }
        for _ in 0..<100 {
            await #expect(throws: VendingFailure.unavailable(reason: "http_500")) {
                try await engine.freshToken(of: "user 0", minimumLife: .zero)
            }
            world.time.advance(by: .milliseconds(99))
        }
        #expect(world.google.calls == 1)
        world.google.answer { _ in .grant }
        world.time.advance(by: .milliseconds(100))
        #expect(try await engine.freshToken(of: "user 0", minimumLife: .zero).warning == nil)
        #expect(world.google.calls == 2)
    }

    @Test("An open breaker lets no caller through: the old token is served with a warning")
    func breakerOpen() async throws {
        let world = try World()
        try await world.add(0..<2)
        let engine = world.engine()
        let first = try await engine.freshToken(of: "user 0", minimumLife: .zero)
        world.google.answer { _ in .answer(.clientFault(code: "invalid_client")) }
        let served = try await engine.freshToken(of: "user 0", minimumLife: .seconds(7200))
        #expect(served.warning == "invalid_client" && served.accessToken == first.accessToken)
        let again = try await engine.freshToken(of: "user 0", minimumLife: .seconds(7200))
        #expect(again.warning == "breaker_open" && again.accessToken == first.accessToken)
        await #expect(throws: VendingFailure.unavailable(reason: "breaker_open")) {
            try await engine.freshToken(of: "user 1", minimumLife: .zero)
        }
        #expect(world.google.calls == 2)
    }

    @Test("A caller's request does not confirm a refusal in doubt")
    func confirmation() async throws {
        let world = try World(seed: 80, lifetime: .seconds(60))
        try await world.add(0..<60)
        let engine = world.engine(maxRate: 100_000)
        await world.run(engine, for: .seconds(5))
        world.time.advance(by: .seconds(120))
        world.google.answer { _ in .answer(.invalidGrant) }
        _ = await engine.runUntilQuiet()
        #expect(try await world.states() == [.retrying: 60])
        for _ in 0..<5 {
            world.time.advance(by: .seconds(10))
            await #expect(throws: VendingFailure.unavailable(reason: "invalid_grant")) {
                try await engine.freshToken(of: "user 3", minimumLife: .zero)
            }
        }
        world.time.advance(by: .seconds(10))
        #expect(try await world.states() == [.retrying: 60])
        world.google.answer { _ in .grant }
        #expect(try await engine.freshToken(of: "user 3", minimumLife: .zero).warning == nil)
    }

    @Test("A requested revocation is sent to Google at once")
    func finishRevocation() async throws {
        let world = try World()
        try await world.add(0..<1)
        let engine = world.engine()
        try await world.change(0) { $0.disconnectByRequest(revokes: true, at: start) }
        world.google.failRevocations(with: .unavailable(code: "connect"))
        #expect(try await !engine.finishRevocation(of: "user 0"))
        world.google.failRevocations(with: nil)
        #expect(try await engine.finishRevocation(of: "user 0"))
        #expect(try await engine.finishRevocation(of: "user 0"), "a revocation that was done before counts as done")
        #expect(try await world.grant(0).refreshToken == nil)
        #expect(world.google.revoked.count == 2)
    }
}

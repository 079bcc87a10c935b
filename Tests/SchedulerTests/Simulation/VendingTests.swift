import Crypto
import GoogleOAuth
import SchedulerTestSupport
import Storage
import TestSupport
import Testing

@testable import Base
@testable import Scheduler

@Suite("A token for a caller", .timeLimit(.minutes(10)))
struct VendingTests {
    @Test("A thousand callers at once cost one call, and get the same token")
    func singleRefresh() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        fixture.google.answer { _ in .hold }
        let engine = fixture.engine()
        let tokens = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<1000 {
                group.addTask { try await engine.freshToken(of: "user 0", minimumLife: .zero).accessToken.reveal() }
            }
            await fixture.google.waitUntilHolding(1)
            fixture.google.release()
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(tokens == [fixture.google.account(0).accessToken])
        #expect(fixture.google.calls == 1)
    }

    @Test("A caller joins a refresh that the engine has started")
    func joins() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        fixture.google.answer { _ in .hold }
        let engine = fixture.engine()
        _ = await engine.runLoopIteration()
        await fixture.google.waitUntilHolding(1)
        async let token = engine.freshToken(of: "user 0", minimumLife: .zero)
        fixture.google.release()
        #expect(try await token.accessToken.reveal() == fixture.google.account(0).accessToken)
        #expect(fixture.google.calls == 1)
    }

    @Test("A queued grant that a caller refreshes in the meantime costs the pace one request and not two")
    func joinsBeforeClaim() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        let engine = fixture.engine(maxRate: 20)
        _ = await engine.runUntilQuiet()
        try await fixture.add(1..<2, dueIn: .milliseconds(10))
        await engine.storeChanged()
        _ = await engine.runUntilQuiet()
        fixture.time.advance(by: .milliseconds(20))
        _ = await engine.runUntilQuiet()
        #expect(fixture.google.calls == 1, "it waits for a common claim")

        fixture.google.answer { _ in .hold }
        async let token = engine.freshToken(of: "user 1", minimumLife: .zero)
        await fixture.google.waitUntilHolding(1)
        let before = await engine.availableRequests
        fixture.time.advance(by: RefreshEngineState.gatheringTime)
        _ = await engine.runLoopIteration()
        #expect(await engine.availableRequests == before + 1, "75 ms give one request")
        fixture.google.release()
        _ = try await token
        #expect(fixture.google.calls == 2)
    }

    @Test("A stored token with enough life left is served without a call")
    func stored() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        let engine = fixture.engine()
        let first = try await engine.freshToken(of: "user 0", minimumLife: .seconds(60))
        fixture.time.advance(by: .seconds(1000))
        let second = try await engine.freshToken(of: "user 0", minimumLife: .seconds(2599))
        #expect(second.accessToken == first.accessToken && second.warning == nil)
        #expect(second.expiresAt == start + .seconds(3600) && second.type == "Bearer")
        #expect(fixture.google.calls == 1)
        let third = try await engine.freshToken(of: "user 0", minimumLife: .seconds(2600))
        #expect(third.accessToken != first.accessToken)
        #expect(fixture.google.calls == 2)
    }

    @Test("A token with enough life left carries a warning while the grant's refreshes fail")
    func servesWithWarning() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        let engine = fixture.engine()
        #expect(try await engine.freshToken(of: "user 0", minimumLife: .zero).warning == nil)
        let now = fixture.time.now
        try await fixture.store.database.transact { transaction in
            guard var grant = try transaction.grant(ofUser: "user 0") else { return }
            _ = grant.retry(reason: GrantReason(rawValue: "http_503"), dueAt: now + .seconds(5), at: now)
            try transaction.update(grant)
        }
        #expect(try await engine.freshToken(of: "user 0", minimumLife: .zero).warning == "http_503")
    }

    @Test("A request for more life than Google gives costs one call, not a series")
    func moreThanGoogleGives() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        let token = try await fixture.engine().freshToken(of: "user 0", minimumLife: .seconds(9_999_999))
        #expect(token.expiresAt == start + .seconds(3600))
        #expect(fixture.google.calls == 1)
    }

    @Test("While another worker has the grant, the caller waits for its result")
    func otherWorker() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        fixture.google.answer { _ in .hold }
        let other = fixture.engine("other")
        _ = await other.runLoopIteration()
        await fixture.google.waitUntilHolding(1)
        let engine = fixture.engine()
        async let token = engine.freshToken(of: "user 0", minimumLife: .zero)
        await fixture.time.sleepers(atLeast: 1)
        fixture.google.release()
        await other.waitUntilIdle()
        fixture.time.advance(by: .milliseconds(100))
        #expect(try await token.accessToken.reveal() == fixture.google.account(0).accessToken)
        #expect(fixture.google.calls == 1)
    }

    @Test("An unknown user is unknown")
    func unknownUser() async throws {
        let fixture = try EngineFixture()
        await #expect(throws: VendingError.unknownGrant) {
            try await fixture.engine().freshToken(of: "nobody", minimumLife: .zero)
        }
    }

    @Test(
        "A grant that shows as disconnected is refused with its state, reason and time, and never called",
        arguments: [
            (RefreshFailure.invalidGrant, GrantState.disconnected, "invalid_grant"),
            (.signInRequired(code: "invalid_rapt"), .reauthRequired, "invalid_rapt"),
            (.blocked(code: "policy_enforced"), .suspended, "policy_enforced"),
        ]
    )
    func refused(verdict: RefreshFailure, state: GrantState, reason: String) async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        fixture.google.answer { _ in .answer(verdict) }
        let engine = fixture.engine()
        let expected = VendingError.refused(state: state, reason: GrantReason(rawValue: reason), since: start)
        for _ in 0..<3 {
            await #expect(throws: expected) { try await engine.freshToken(of: "user 0", minimumLife: .zero) }
        }
        #expect(fixture.google.calls == 1)
    }

    @Test(
        "While refreshing fails the old token is served with a warning, until it expires",
        arguments: [
            RefreshVerdict.failed(.noAnswer(code: "timeout")), .failed(.endpointFault(code: "http_503")),
            .failed(.throttled(code: "http_429")), .failed(.unknown(code: "new")), .failed(.notJSON),
            .flawed(code: "flawed_answer", rotated: nil),
        ]
    )
    func oldToken(verdict: RefreshVerdict) async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        let engine = fixture.engine()
        let first = try await engine.freshToken(of: "user 0", minimumLife: .zero)
        fixture.google.answer { _ in .verdict(verdict) }
        fixture.time.advance(by: .seconds(3000))
        let old = try await engine.freshToken(of: "user 0", minimumLife: .seconds(1800))
        #expect(old.accessToken == first.accessToken)
        #expect(old.warning == verdict.code)
        fixture.time.advance(by: .seconds(600))
        await #expect(throws: VendingError.unavailable(reason: verdict.code)) {
            try await engine.freshToken(of: "user 0", minimumLife: .zero)
        }
        #expect(fixture.google.calls == 3)
    }

    @Test("In a wave the warning names the state in which the grants wait, not an end")
    func oldTokenInWave() async throws {
        let fixture = try EngineFixture(seed: 80)
        try await fixture.add(0..<60)
        let engine = fixture.engine(maxRate: 100_000)
        await fixture.run(engine, for: .seconds(5))
        fixture.google.answer { _ in .answer(.invalidGrant) }
        fixture.time.advance(by: .seconds(3000))
        var warnings: [String?] = []
        for user in 0..<60 {
            do {
                let token = try await engine.freshToken(of: "user \(user)", minimumLife: .seconds(1800))
                warnings.append(token.warning)
            } catch VendingError.refused {
                // The first ones end before the rate is unusual.
            }
        }
        #expect(warnings.count > 40)
        #expect(Set(warnings) == ["invalid_grant_unconfirmed"])
    }

    @Test("However often callers ask while refreshing fails, Google is asked once in ten seconds, and then again")
    func failingRefreshIsNotHammered() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        let engine = fixture.engine()
        fixture.google.answer { _ in .answer(.endpointFault(code: "http_500")) }
        for _ in 0..<100 {
            await #expect(throws: VendingError.unavailable(reason: "http_500")) {
                try await engine.freshToken(of: "user 0", minimumLife: .zero)
            }
            fixture.time.advance(by: .milliseconds(99))
        }
        #expect(fixture.google.calls == 1)
        fixture.google.answer { _ in .grant }
        fixture.time.advance(by: .milliseconds(100))
        #expect(try await engine.freshToken(of: "user 0", minimumLife: .zero).warning == nil)
        #expect(fixture.google.calls == 2)
    }

    @Test("An open breaker lets no caller through: the old token is served with a warning")
    func breakerOpen() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<2)
        let engine = fixture.engine()
        let first = try await engine.freshToken(of: "user 0", minimumLife: .zero)
        fixture.google.answer { _ in .answer(.clientFault(code: "invalid_client")) }
        let served = try await engine.freshToken(of: "user 0", minimumLife: .seconds(7200))
        #expect(served.warning == "invalid_client" && served.accessToken == first.accessToken)
        let again = try await engine.freshToken(of: "user 0", minimumLife: .seconds(7200))
        #expect(again.warning == "breaker_open" && again.accessToken == first.accessToken)
        await #expect(throws: VendingError.unavailable(reason: "breaker_open")) {
            try await engine.freshToken(of: "user 1", minimumLife: .zero)
        }
        #expect(fixture.google.calls == 2)
    }

    @Test("A caller's request does not confirm a refusal in doubt")
    func confirmation() async throws {
        let fixture = try EngineFixture(seed: 80, lifetime: .seconds(60))
        try await fixture.add(0..<60)
        let engine = fixture.engine(maxRate: 100_000)
        await fixture.run(engine, for: .seconds(5))
        fixture.time.advance(by: .seconds(120))
        fixture.google.answer { _ in .answer(.invalidGrant) }
        _ = await engine.runUntilQuiet()
        #expect(try await fixture.states() == [.retrying: 60])
        for _ in 0..<5 {
            fixture.time.advance(by: .seconds(10))
            await #expect(throws: VendingError.unavailable(reason: "invalid_grant_unconfirmed")) {
                try await engine.freshToken(of: "user 3", minimumLife: .zero)
            }
        }
        fixture.time.advance(by: .seconds(10))
        #expect(try await fixture.states() == [.retrying: 60])
        fixture.google.answer { _ in .grant }
        #expect(try await engine.freshToken(of: "user 3", minimumLife: .zero).warning == nil)
    }

    @Test("A requested revocation is sent to Google at once")
    func finishRevocation() async throws {
        let fixture = try EngineFixture()
        try await fixture.add(0..<1)
        let engine = fixture.engine()
        try await fixture.change(0) { $0.disconnectByRequest(revokes: true, at: start) }
        fixture.google.failRevocations(with: .unavailable(code: "connect"))
        #expect(try await !engine.revokeNow(grantOf: "user 0"))
        fixture.google.failRevocations(with: nil)
        #expect(try await engine.revokeNow(grantOf: "user 0"))
        #expect(try await engine.revokeNow(grantOf: "user 0"), "a revocation that was done before counts as done")
        #expect(try await fixture.grant(0).refreshToken == nil)
        #expect(fixture.google.revoked.count == 2)
    }
}

extension RefreshEngine {
    fileprivate var availableRequests: Int {
        let instant = state.sharedInstant(at: time.sinceBoot)
        return state.gates[EngineFixture.clientID]?.pacer.available(at: instant) ?? 0
    }
}

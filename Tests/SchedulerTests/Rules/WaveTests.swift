import Base
import GoogleOAuth
import Telemetry
import Testing

@testable import Scheduler
@testable import Storage

@Suite("A wave of invalid_grant")
struct WaveTests {
    @Test(
        "is more than a fifth of the last 200 answers, and at least 20",
        arguments: [
            (0, 19, false), (0, 20, true), (79, 20, true), (80, 20, false), (159, 40, true), (160, 40, false),
            (159, 41, true), (1000, 41, true), (1000, 40, false),
        ]
    )
    func threshold(valid: Int, invalid: Int, isWave: Bool) {
        var fixture = RulesFixture()
        fixture.recordAnswers(valid: valid, invalid: invalid)
        #expect(fixture.health.recentAnswers.isWave == isWave)
        #expect(fixture.health.recentAnswers.answers.count == min(200, valid + invalid))
    }

    @Test("raises an alarm for each grant that it keeps in doubt, and an ordinary end does not")
    func alarm() throws {
        var fixture = RulesFixture()
        fixture.recordAnswers(valid: 0, invalid: 200)
        var kept = try Sample.grant()
        let held = fixture.refuse(.invalidGrant, on: &kept)
        #expect(held.outcome == .held && held.alarm?.kind == .grantsInDoubt)
        fixture = RulesFixture()
        var ended = try Sample.grant()
        let believed = fixture.refuse(.invalidGrant, on: &ended)
        #expect(believed.outcome == .disconnected && believed.alarm == nil)
    }

    @Test("ends when enough other answers follow")
    func ends() {
        var fixture = RulesFixture()
        fixture.recordAnswers(valid: 0, invalid: 200)
        fixture.recordAnswers(valid: 159, invalid: 0)
        #expect(fixture.health.recentAnswers.isWave)
        fixture.recordAnswers(valid: 1, invalid: 0)
        #expect(!fixture.health.recentAnswers.isWave)
    }

    @Test("counts only proven grants: an import of dead tokens is not a wave")
    func unprovenGrantsDoNotCount() throws {
        var fixture = RulesFixture()
        for number in 0..<200 {
            var grant = try Sample.grant(Int64(number), isProven: false)
            let decision = fixture.refuse(.invalidGrant, on: &grant)
            #expect(decision.outcome == .disconnected)
        }
        #expect(fixture.health.recentAnswers.answers.isEmpty)
    }

    @Test("counts every answer that shows if a proven grant's token is alive")
    func countedAnswers() throws {
        var fixture = RulesFixture()
        let counted: [RefreshVerdict] = [
            .invalidGrant, .signInRequired(code: "invalid_rapt"), .blocked(code: "policy_enforced"),
        ]
        let silent: [RefreshVerdict] = [
            .clientFault(code: "invalid_client"), .clientOrForeignToken(code: "invalid_request"),
            .throttled(code: "http_429"), .endpointFault(code: "http_503"), .noAnswer(code: "timeout"), .notJSON,
            .unknown(code: "new"),
        ]
        for verdict in counted + silent {
            var grant = try Sample.grant()
            _ = fixture.refuse(verdict, on: &grant)
        }
        var grant = try Sample.grant()
        _ = fixture.decide(try Sample.granted(), on: &grant)
        #expect(fixture.health.recentAnswers.answers == [true, false, false, false])
    }

    @Test("The answer that shows it recalls the grants that were ended, and is held itself")
    func recall() throws {
        var fixture = RulesFixture()
        var first = try Sample.grant(1)
        #expect(fixture.refuse(.invalidGrant, on: &first).outcome == .disconnected, "the first may be a user who left")
        var second = try Sample.grant(2)
        let held = fixture.refuse(.invalidGrant, on: &second)
        #expect(held.outcome == .held && held.recalls.isEmpty, "two of two are unusual, but may be chance")
        var third = try Sample.grant(3)
        let decision = fixture.refuse(.invalidGrant, on: &third)
        #expect(decision.outcome == .held && decision.recalls == [first.id])
        #expect(third.state == .retrying && third.reason == .invalidGrantUnconfirmed)
        #expect(third.dueAt == start + .seconds(300) && third.suspectedSince == start)
        #expect(third.generation == 3, "a held grant keeps its generation")

        var next = try Sample.grant(4)
        let fourth = fixture.refuse(.invalidGrant, on: &next)
        #expect(fourth.outcome == .held && fourth.recalls.isEmpty, "each grant is recalled once")
    }

    @Test("A second invalid_grant is believed after the end of the wave, and after 50 minutes in any case")
    func confirmation() throws {
        var fixture = RulesFixture()
        fixture.recordAnswers(valid: 0, invalid: 50)
        var grant = try Sample.grant()
        var other = try Sample.grant(2)
        #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .held)
        #expect(fixture.refuse(.invalidGrant, on: &other).outcome == .held)
        for minute in [5, 15, 30] {
            #expect(grant.dueAt == start + .seconds(60 * minute))
            fixture.advance(by: try #require(grant.dueAt) - fixture.now)
            #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .held)
            #expect(grant.suspectedSince == start)
        }
        fixture.advance(by: try #require(grant.dueAt) - fixture.now)
        #expect(fixture.now == start + RefreshRules.maximumDoubt)
        let decision = fixture.refuse(.invalidGrant, on: &grant)
        #expect(decision.outcome == .disconnected && decision.events.count == 1)
        #expect(grant.state == .disconnected && grant.reason == .invalidGrant && grant.generation == 4)

        fixture.recordAnswers(valid: 200, invalid: 0)
        #expect(fixture.refuse(.invalidGrant, on: &other).outcome == .disconnected)
    }

    @Test("A known client's single invalid_grant needs a confirmation, unless such answers are usual for it")
    func knownClient() throws {
        for (share, outcome) in [(0, RefreshOutcome.held), (50, .disconnected)] {
            var fixture = RulesFixture()
            for minute in 0..<600 {
                for number in 0..<20 {
                    fixture.health.recordAnswer(isInvalidGrant: false, at: fixture.now)
                    guard share > 0, (20 * minute + number) % share == 0 else { continue }
                    fixture.health.rate.record(isInvalidGrant: true, at: fixture.now)
                    fixture.health.recordEnd(of: GrantID(rawValue: 9), isConfirmed: true, at: fixture.now)
                }
                fixture.advance(by: .seconds(60))
            }
            var grant = try Sample.grant()
            #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == outcome)
            guard outcome == .held else { continue }
            fixture.advance(by: .seconds(300))
            #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .held, "a wave may last for ten minutes")
            fixture.advance(by: .seconds(600))
            #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .disconnected, "confirmed")
        }
    }

    @Test("A caller before the confirmation is due does not count as one")
    func askedEarly() throws {
        var fixture = RulesFixture()
        fixture.recordAnswers(valid: 0, invalid: 50)
        var grant = try Sample.grant()
        _ = fixture.refuse(.invalidGrant, on: &grant)
        fixture.recordAnswers(valid: 200, invalid: 0)
        for _ in 0..<29 {
            fixture.advance(by: .seconds(10))
            let decision = fixture.refuse(.invalidGrant, on: &grant)
            #expect(decision.outcome == .held && decision.events.isEmpty)
            #expect(grant.state == .retrying && grant.dueAt == start + .seconds(300))
        }
        fixture.advance(by: .seconds(10))
        #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .disconnected)
    }

    @Test("A good answer in place of the confirmation, early or not, makes the grant active", arguments: [10, 300])
    func successInPlaceOfConfirmation(seconds: Int) throws {
        var fixture = RulesFixture()
        fixture.recordAnswers(valid: 0, invalid: 50)
        var grant = try Sample.grant()
        _ = fixture.refuse(.invalidGrant, on: &grant)
        fixture.advance(by: .seconds(seconds))
        #expect(fixture.decide(try Sample.granted(at: fixture.now), on: &grant).outcome == .refreshed)
        #expect(grant.state == .active && grant.reason == .none)
    }

    @Test("A grant that was recalled is confirmed like the others")
    func recalledGrant() throws {
        var fixture = RulesFixture()
        var grant = try Sample.grant()
        #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .disconnected)
        fixture.advance(by: .seconds(60))
        let events = grant.recall(confirmAt: fixture.now + .seconds(300), at: fixture.now)
        #expect(events.count == 1)
        #expect(grant.state == .retrying && grant.reason == .invalidGrantUnconfirmed)
        fixture.advance(by: .seconds(299))
        #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .held)
        fixture.advance(by: .seconds(1))
        #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .disconnected)
    }

    @Test(
        "A suspicion of another kind does not confirm an invalid_grant in a wave",
        arguments: [GrantState.suspended, .active]
    )
    func otherSuspicion(state: GrantState) throws {
        var fixture = RulesFixture()
        var grant = try Sample.grant(state: state)
        _ = fixture.refuse(.clientOrForeignToken(code: "unauthorized_client"), on: &grant)
        fixture.advance(by: .seconds(2 * 86_400))
        _ = fixture.refuse(.endpointFault(code: "http_503"), on: &grant)
        fixture.advance(by: .seconds(3600))
        #expect(
            GrantRetry.outcome(
                for: grant,
                includesDisabledAccounts: true,
                at: LeaseTime(epoch: "boot", instant: fixture.instant)
            ) == .due
        )
        fixture.recordAnswers(valid: 0, invalid: 50)
        #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .held)
        #expect(grant.suspectedSince == fixture.now)
    }

    @Test("An invalid_grant in doubt is not the first refusal of a foreign token", arguments: [true, false])
    func suspicionOfForeignToken(isSuspended: Bool) throws {
        var fixture = RulesFixture()
        fixture.recordAnswers(valid: 0, invalid: 50)
        var grant = try Sample.grant(state: isSuspended ? .suspended : .active, isProven: false)
        #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .held)
        fixture.advance(by: .seconds(300))
        _ = fixture.refuse(.endpointFault(code: "http_503"), on: &grant)
        var other = try Sample.grant(2)
        _ = fixture.decide(try Sample.granted(at: fixture.now), on: &other)
        fixture.advance(by: .seconds(3600))
        let decision = fixture.refuse(.clientOrForeignToken(code: "unauthorized_client"), on: &grant)
        #expect(decision.outcome == .retrying)
        #expect(grant.state == (isSuspended ? .suspended : .retrying))
    }

    @Test("A suspended grant is held without ever showing as connected")
    func suspendedInWave() throws {
        var fixture = RulesFixture()
        fixture.recordAnswers(valid: 0, invalid: 50)
        var grant = try Sample.grant(state: .suspended, reason: GrantReason(rawValue: "policy_enforced"))
        let decision = fixture.refuse(.invalidGrant, on: &grant)
        #expect(decision.outcome == .held && decision.events.isEmpty)
        #expect(grant.state == .suspended && grant.dueAt == start + .seconds(300))
        fixture.recordAnswers(valid: 200, invalid: 0)
        fixture.advance(by: .seconds(300))
        #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .disconnected)
    }
}

import Base
import Crypto
import GoogleOAuth
import Telemetry
import Testing

@testable import Scheduler
@testable import Storage

/// An answer that ends or suspends a proven grant.
private struct Refusal: Sendable, CustomTestStringConvertible {
    var verdict: RefreshFailure
    /// The outcome, the state and the reason once it is believed.
    var outcome: RefreshOutcome
    var state: GrantState
    /// The reason while it is in doubt.
    var unconfirmed: GrantReason

    var testDescription: String { verdict.code }
}

private let refusals = [
    Refusal(
        verdict: .invalidGrant,
        outcome: .disconnected,
        state: .disconnected,
        unconfirmed: .invalidGrantUnconfirmed
    ),
    Refusal(
        verdict: .signInRequired(code: "invalid_rapt"),
        outcome: .reauthRequired,
        state: .reauthRequired,
        unconfirmed: .refusalUnconfirmed
    ),
    Refusal(
        verdict: .blocked(code: "admin_policy_enforced"),
        outcome: .suspended,
        state: .suspended,
        unconfirmed: .refusalUnconfirmed
    ),
]

@Suite("A wave of refusals")
struct WaveTests {
    @Test(
        "is at least three refusals that are more than chance explains at the usual rate",
        arguments: [
            (0, 1, RefusalRate.Level.usual), (0, 2, .unusual), (100, 3, .usual), (100, 4, .wave), (1_000, 12, .usual),
            (1_000, 13, .wave),
        ]
    )
    func threshold(valid: Int, invalid: Int, level: RefusalRate.Level) {
        var fixture = RulesFixture()
        fixture.recordAnswers(valid: valid, invalid: invalid)
        #expect(fixture.health.level(at: fixture.now) == level)
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

    @Test("ends when its refusals are ten minutes old")
    func ends() {
        var fixture = RulesFixture()
        fixture.recordAnswers(valid: 0, invalid: 200)
        fixture.advance(by: RefusalRate.span - .seconds(60))
        #expect(fixture.health.level(at: fixture.now) == .wave)
        fixture.advance(by: .seconds(60))
        #expect(fixture.health.level(at: fixture.now) == .usual)
    }

    @Test("counts only proven grants: an import of dead tokens is not a wave")
    func unprovenGrantsDoNotCount() throws {
        var fixture = RulesFixture()
        for number in 0..<200 {
            var grant = try Sample.grant(Int64(number), isProven: false)
            let decision = fixture.refuse(.invalidGrant, on: &grant)
            #expect(decision.outcome == .disconnected)
        }
        #expect(fixture.health.rate == RefusalRate())
    }

    @Test("counts every answer that shows if a proven grant's token is alive")
    func countedAnswers() throws {
        var fixture = RulesFixture()
        let counted: [RefreshFailure] = [
            .invalidGrant, .signInRequired(code: "invalid_rapt"), .blocked(code: "policy_enforced"),
        ]
        let silent: [RefreshFailure] = [
            .clientFault(code: "invalid_client"), .clientOrForeignToken(code: "invalid_request"),
            .throttled(code: "http_429"), .endpointFault(code: "http_503"), .noAnswer(code: "timeout"), .notJSON,
            .unknown(code: "new"), .proofRefused(code: "use_dpop_nonce"),
        ]
        for verdict in counted + silent {
            var grant = try Sample.grant()
            _ = fixture.refuse(verdict, on: &grant)
        }
        var grant = try Sample.grant()
        _ = fixture.decide(try Sample.granted(), on: &grant)
        #expect(fixture.health.rate.minutes.map(\.answers) == [4] && fixture.health.rate.minutes.map(\.refused) == [3])
    }

    /// Grants that the wave has put in doubt work again, and its refusals are forgotten.
    private func endWave(_ fixture: inout RulesFixture, recoveries: Int64 = 3, forgets: Bool = true) throws {
        for number in 0..<recoveries {
            var grant = try Sample.grant(1000 + number, state: .retrying, reason: .invalidGrantUnconfirmed)
            _ = fixture.decide(try Sample.granted(at: fixture.now), on: &grant)
        }
        if forgets { fixture.forgetRefusals() }
    }

    @Test("that always refuses the same grants is confirmed for 50 minutes, although others work")
    func sameGrants() throws {
        var fixture = RulesFixture()
        fixture.recordAnswers(valid: 0, invalid: 50)
        var grant = try Sample.grant()
        _ = fixture.refuse(.invalidGrant, on: &grant)
        fixture.forgetRefusals()
        for time in [300, 900, 1800] {
            fixture.advance(by: start + .seconds(time) - fixture.now)
            #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .held)
        }
        fixture.advance(by: start + .seconds(3000) - fixture.now)
        #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .disconnected)
    }

    @Test("does not end because a grant or two work in between")
    func chanceRecovery() throws {
        var fixture = RulesFixture()
        var grants = try (1...20).map { try Sample.grant($0) }
        for index in grants.indices { _ = fixture.refuse(.invalidGrant, on: &grants[index]) }
        grants.removeAll { $0.state == .disconnected }
        for seconds in [300, 900] {
            fixture.advance(by: start + .seconds(seconds) - fixture.now)
            try endWave(&fixture, recoveries: 2)
            for index in grants.indices {
                #expect(fixture.refuse(.invalidGrant, on: &grants[index]).outcome == .held, "\(seconds) s")
            }
        }
        fixture.advance(by: start + .seconds(1800) - fixture.now)
        try endWave(&fixture)
        #expect(fixture.refuse(.invalidGrant, on: &grants[0]).outcome == .disconnected, "it has left")
        #expect(fixture.refuse(.invalidGrant, on: &grants[1]).outcome == .held, "three more must work first")
    }

    @Test("goes on whatever tokens a stranger brings, and whoever asks early")
    func strangers() throws {
        var fixture = RulesFixture()
        var grants = try (1...20).map { try Sample.grant($0) }
        for index in grants.indices { _ = fixture.refuse(.invalidGrant, on: &grants[index]) }
        fixture.advance(by: .seconds(300))
        try endWave(&fixture, forgets: false)
        let recoveries = fixture.health.lastWave?.recoveries
        var dead = try Sample.grant(500, isProven: false)
        #expect(fixture.refuse(.invalidGrant, on: &dead).outcome == .held)
        fixture.advance(by: .seconds(300))
        #expect(fixture.refuse(.invalidGrant, on: &dead).outcome == .held)
        #expect(fixture.health.lastWave?.recoveries == recoveries, "a dead token of a stranger changes nothing")
        var asked = try Sample.grant(600, state: .retrying, reason: .invalidGrantUnconfirmed)
        asked.reschedule(to: fixture.now + .seconds(60))
        _ = fixture.decide(try Sample.granted(at: fixture.now), on: &asked)
        #expect(fixture.health.lastWave?.recoveries == recoveries, "a caller's success is no confirmation")
    }

    @Test("is remembered after a worker of another version has dropped it")
    func droppedWave() throws {
        var fixture = RulesFixture()
        var grants = try (1...20).map { try Sample.grant($0) }
        for index in grants.indices { _ = fixture.refuse(.invalidGrant, on: &grants[index]) }
        fixture.health.lastWave = nil
        fixture.advance(by: .seconds(300))
        for index in grants.indices { _ = fixture.refuse(.invalidGrant, on: &grants[index]) }
        fixture.advance(by: .seconds(600))
        let held = grants.indices.filter { grants[$0].isInDoubt }
        #expect(held.count >= 18)
        for index in held { #expect(fixture.refuse(.invalidGrant, on: &grants[index]).outcome == .held) }
    }

    @Test("keeps its doubt when a caller's early attempt fails in another way")
    func earlyFailure() throws {
        var fixture = RulesFixture()
        fixture.recordAnswers(valid: 0, invalid: 50)
        var grant = try Sample.grant()
        _ = fixture.refuse(.invalidGrant, on: &grant)
        let failures: [RefreshFailure] = [
            .endpointFault(code: "http_503"), .clientOrForeignToken(code: "invalid_request"),
        ]
        for failure in failures {
            fixture.advance(by: .seconds(60))
            #expect(fixture.refuse(failure, on: &grant).outcome == .retrying)
            #expect(grant.isInDoubt && grant.suspectedSince == start && grant.dueAt == start + .seconds(300))
        }
    }

    @Test("The answer that shows it recalls the grants that were ended, and is held itself", arguments: refusals)
    fileprivate func recall(refusal: Refusal) throws {
        var fixture = RulesFixture()
        var first = try Sample.grant(1)
        let believed = fixture.refuse(refusal.verdict, on: &first)
        #expect(believed.outcome == refusal.outcome && believed.alarm == nil, "the first may be a user who left")
        #expect(first.state == refusal.state && first.reason.rawValue == refusal.verdict.code)
        #expect(fixture.health.recallTimeLeft(of: first.id, at: start) == .seconds(600))
        var second = try Sample.grant(2)
        let held = fixture.refuse(refusal.verdict, on: &second)
        #expect(held.outcome == .held && held.recalls.isEmpty, "two of two are unusual, but may be chance")
        var third = try Sample.grant(3)
        let decision = fixture.refuse(refusal.verdict, on: &third)
        #expect(decision.outcome == .held && decision.recalls == [first.id])
        #expect(decision.alarm?.kind == .grantsInDoubt)
        #expect(third.state == .retrying && third.reason == refusal.unconfirmed)
        #expect(third.dueAt == start + .seconds(300) && third.suspectedSince == start)
        #expect(third.generation == 3, "a held grant keeps its generation")
        #expect(first.recall(confirmAt: start + .seconds(300), at: start).map(\.from) == [refusal.state])
        #expect(first.state == .retrying && first.reason == refusal.unconfirmed && first.suspectedSince == start)

        var next = try Sample.grant(4)
        let fourth = fixture.refuse(refusal.verdict, on: &next)
        #expect(fourth.outcome == .held && fourth.recalls.isEmpty, "each grant is recalled once")
    }

    @Test(
        "Each refusal is held, and believed once it is confirmed: after the wave, or after 50 minutes",
        arguments: refusals,
        [300, 3000]
    )
    fileprivate func heldUntilConfirmed(refusal: Refusal, seconds: Int) throws {
        var fixture = RulesFixture()
        fixture.recordAnswers(valid: 0, invalid: 50)
        var grant = try Sample.grant()
        #expect(fixture.refuse(refusal.verdict, on: &grant).alarm?.kind == .grantsInDoubt)
        if seconds == 300 { try endWave(&fixture) }
        fixture.advance(by: .seconds(10))
        #expect(fixture.refuse(refusal.verdict, on: &grant).outcome == .held, "a caller asked early")
        for time in [300, 900, 1800, 3000] where time <= seconds {
            #expect(grant.state == .retrying && grant.reason == refusal.unconfirmed && grant.generation == 3)
            #expect(grant.dueAt == start + .seconds(time) && grant.suspectedSince == start)
            fixture.advance(by: start + .seconds(time) - fixture.now)
            let decision = fixture.refuse(refusal.verdict, on: &grant)
            #expect(decision.outcome == (time == seconds ? refusal.outcome : .held))
        }
        #expect(grant.state == refusal.state && grant.reason.rawValue == refusal.verdict.code)
        #expect(grant.dueAt == (refusal.state == .suspended ? fixture.now + .seconds(86_400) : nil))
        #expect(fixture.health.recallTimeLeft(of: grant.id, at: fixture.now) == nil, "a confirmed end stays")
    }

    @Test("Another refusal confirms the first one, and its meaning counts")
    func otherRefusal() throws {
        var fixture = RulesFixture()
        fixture.recordAnswers(valid: 0, invalid: 50)
        var grant = try Sample.grant()
        #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .held)
        fixture.advance(by: .seconds(300))
        #expect(fixture.refuse(.blocked(code: "access_denied"), on: &grant).outcome == .held)
        #expect(grant.reason == .refusalUnconfirmed && grant.suspectedSince == start)
        try endWave(&fixture)
        fixture.advance(by: .seconds(600))
        #expect(fixture.refuse(.blocked(code: "access_denied"), on: &grant).outcome == .suspended)
    }

    @Test("A grant that is blocked already keeps its daily probe, and does not count")
    func blockedAlready() throws {
        var fixture = RulesFixture()
        fixture.recordAnswers(valid: 0, invalid: 50)
        var grant = try Sample.grant(state: .suspended, reason: GrantReason(rawValue: "access_denied"))
        let decision = fixture.refuse(.blocked(code: "access_denied"), on: &grant)
        #expect(decision.outcome == .suspended && decision.alarm == nil && decision.events.isEmpty)
        #expect(grant.dueAt == start + .seconds(86_400))
        #expect(fixture.health.rate.minutes.map(\.refused) == [50])
    }

    @Test("What the worker itself finds out is not doubted")
    func otherAccount() throws {
        var fixture = RulesFixture()
        fixture.recordAnswers(valid: 0, invalid: 50)
        var grant = try Sample.grant(isProven: false)
        let decision = fixture.refuse(.signInRequired(code: "account_mismatch"), on: &grant)
        #expect(decision.outcome == .reauthRequired && grant.reason == .accountMismatch)
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

        try endWave(&fixture)
        #expect(fixture.refuse(.invalidGrant, on: &other).outcome == .disconnected)
    }

    @Test("A known client's single invalid_grant needs a confirmation, unless such answers are usual for it")
    func knownClient() throws {
        for (share, outcome) in [(0, RefreshOutcome.held), (50, .disconnected)] {
            var fixture = RulesFixture()
            for minute in 0..<600 {
                for number in 0..<20 {
                    fixture.health.recordAnswer(isRefusal: false, at: fixture.now)
                    guard share > 0, (20 * minute + number) % share == 0 else { continue }
                    fixture.health.rate.record(isRefusal: true, at: fixture.now)
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

    @Test("A grant that never worked is in doubt for ten minutes if refusals are unusual, and is not counted")
    func unprovenGrantOfKnownClient() throws {
        var fixture = RulesFixture()
        for _ in 0..<600 {
            for _ in 0..<20 { fixture.health.recordAnswer(isRefusal: false, at: fixture.now) }
            fixture.advance(by: .seconds(60))
        }
        var grant = try Sample.grant(isProven: false)
        #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .held)
        fixture.advance(by: .seconds(300))
        #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .held)
        #expect(fixture.health.level(at: fixture.now) == .usual)
        #expect(fixture.health.rate.minutes.allSatisfy { $0.refused == 0 })
        fixture.advance(by: .seconds(600))
        #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .disconnected)
    }

    @Test("A grant in doubt does not end while another worker can hold the answer that spent its token")
    func answerElsewhere() throws {
        var fixture = RulesFixture()
        fixture.recordAnswers(valid: 0, invalid: 50)
        var grant = try Sample.grant()
        _ = fixture.refuse(.invalidGrant, on: &grant)
        try endWave(&fixture)
        fixture.advance(by: .seconds(300))
        grant.recordLostAnswer(at: fixture.now)
        #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .held)
        fixture.advance(by: .seconds(600))
        try endWave(&fixture)
        #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .disconnected)
        #expect(grant.reason == .answerLost)
    }

    @Test("A response that a clock ahead of time recorded as lost does not keep a dead grant in doubt")
    func answerLostInTheFuture() throws {
        var fixture = RulesFixture()
        fixture.recordAnswers(valid: 50, invalid: 0)
        var grant = try Sample.grant()
        grant.recordLostAnswer(at: fixture.now + .seconds(604_800))
        #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .disconnected)
        #expect(grant.reason == .answerLost)
    }

    @Test("A caller before the confirmation is due does not count as one")
    func askedEarly() throws {
        var fixture = RulesFixture()
        fixture.recordAnswers(valid: 0, invalid: 50)
        var grant = try Sample.grant()
        _ = fixture.refuse(.invalidGrant, on: &grant)
        try endWave(&fixture)
        for _ in 0..<29 {
            fixture.advance(by: .seconds(10))
            let decision = fixture.refuse(.invalidGrant, on: &grant)
            #expect(decision.outcome == .held && decision.events.isEmpty)
            #expect(grant.state == .retrying && grant.dueAt == start + .seconds(300))
        }
        fixture.advance(by: .seconds(10))
        #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .disconnected)
    }

    @Test("A fault of the client, or a missing key, does not bring a confirmation forward")
    func confirmationIsNotEarly() throws {
        for answer in [
            RefreshResult.Answer.failed(.clientFault(code: "invalid_client"), retryAfter: nil), .unreadable(.notSealed),
        ] {
            var fixture = RulesFixture()
            fixture.recordAnswers(valid: 0, invalid: 50)
            var grant = try Sample.grant()
            _ = fixture.refuse(.invalidGrant, on: &grant)
            fixture.advance(by: .seconds(900))
            _ = fixture.refuse(.invalidGrant, on: &grant)
            #expect(grant.dueAt == start + .seconds(1800))
            fixture.advance(by: .seconds(60))
            _ = fixture.decide(answer, on: &grant)
            #expect(grant.dueAt == start + .seconds(1800))
        }
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
        try endWave(&fixture)
        fixture.advance(by: .seconds(300))
        #expect(fixture.refuse(.invalidGrant, on: &grant).outcome == .disconnected)
    }
}

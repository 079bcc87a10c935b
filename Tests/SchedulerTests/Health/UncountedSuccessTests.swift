import Base
import Testing

@testable import Scheduler
@testable import Storage

@Suite("Plain refreshes that are added to a client's health later")
struct UncountedSuccessTests {
    private let instant = BootInstant(milliseconds: 5_000_000)

    private func successes(_ count: Int, at time: Timestamp, secret: UInt32 = 7) -> UncountedSuccesses {
        UncountedSuccesses(at: time, count: count, secretFingerprint: secret)
    }

    /// A health with answers of both kinds in the last minutes, up to this time.
    private func health(until now: Timestamp) -> ClientHealth {
        var health = ClientHealth(epoch: "boot")
        for number in 0..<400 {
            health.recordAnswer(isRefusal: number % 50 == 49, at: now - .seconds(400 - number))
        }
        return health
    }

    @Test("count as if each had been stored with the health", arguments: [0, 1, 30, 199, 200, 999, 1_000, 5_300])
    func sameAsOneByOne(count: Int) {
        let now = start + .seconds(86_400)
        var (added, single) = (health(until: now), health(until: now))
        single.provenSuccessAt = count == 0 ? nil : now
        single.provenSecretFingerprint = ClientSecretFingerprint(rawValue: count == 0 ? 0 : 7)
        for _ in 0..<count { single.recordAnswer(isRefusal: false, at: now) }
        if count > 0 { _ = added.add([successes(count, at: now)], at: now, instant: instant) }
        #expect(added == single)
    }

    @Test("of an earlier minute count in it, or in the current one if a later minute has begun")
    func minutes() {
        let now = start + .seconds(86_400)
        var health = health(until: now)
        let answers = health.rate.minutes.map(\.answers)
        let invalid = health.rate.minutes.map(\.refused).reduce(0, +)
        _ = health.add([successes(10, at: now - .seconds(180)), successes(5, at: now)], at: now, instant: instant)
        #expect(health.rate.minutes.map(\.refused).reduce(0, +) == invalid, "no refusal is forgotten")
        let counted = health.rate.minutes.map(\.answers).reduce(0, +)
        #expect(counted == answers.reduce(0, +) + 15)
        // Hours later, those that were added late count where they belong.
        let later = now + .seconds(7_200)
        _ = health.add([successes(20, at: now + .seconds(120))], at: later, instant: instant)
        #expect(health.rate.minutes.last?.answers == 20)
        health.recordAnswer(isRefusal: true, at: later)
        #expect(health.rate.minutes.map(\.answers) == [1])
    }

    @Test("show which client secret worked last, whatever their order")
    func secrets() {
        var health = ClientHealth(epoch: "boot")
        let parts = [successes(1, at: start + .seconds(9), secret: 2), successes(1, at: start, secret: 1)]
        _ = health.add(parts, at: start + .seconds(10), instant: instant)
        #expect(health.provenSuccessAt == start + .seconds(9))
        #expect(health.provenSecretFingerprint.rawValue == 2)
        _ = health.add([successes(1, at: start + .seconds(8), secret: 3)], at: start + .seconds(10), instant: instant)
        #expect(health.provenSecretFingerprint.rawValue == 2, "an earlier success that became visible later")
        let setBack = start - .seconds(3_600)
        _ = health.add([successes(1, at: setBack, secret: 4)], at: setBack, instant: instant)
        #expect(health.provenSuccessAt == setBack)
        #expect(health.provenSecretFingerprint.rawValue == 4)
    }

    @Test("end a row of refusals and of failures, and close a breaker only if it probes")
    func breaker() {
        var health = ClientHealth(epoch: "boot")
        _ = health.clientErrors.add(GrantID(rawValue: 1), at: instant)
        for grant in 0..<19 as Range<Int64> { _ = health.breaker.endpointFailed(grant: grant, at: instant, jitter: 0) }
        health.failingSince = instant
        let effect = health.add([successes(1, at: start)], at: start, instant: instant + .seconds(10))
        #expect(effect.endsOutage && effect.breakerChange == nil)
        #expect(health.breaker == Breaker())
        #expect(health.clientErrors == ConsecutiveClientErrors())
        #expect(health.failingSince == nil)
        #expect(health.outageEndedAt == start)

        _ = health.breaker.clientFault("invalid_client", at: instant, jitter: 0.5)
        #expect(health.add([successes(9, at: start)], at: start, instant: instant).breakerChange == nil)
        #expect(health.breaker.isOpen, "these were sent before it opened")
        let probedAt = instant + .seconds(8)
        let mayProbe = health.breaker.beginProbe(at: probedAt, deadline: .seconds(20))
        #expect(mayProbe)
        #expect(health.add([successes(1, at: start)], at: start, instant: probedAt).breakerChange == .closed)
    }

    @Test(
        "end a client's fault, and have the grants that failed tried at once if it took ten seconds",
        arguments: [8, 12]
    )
    func clientFaultEnds(seconds: Int) {
        var health = ClientHealth(epoch: "boot")
        _ = health.breaker.clientFault("invalid_client", at: instant, jitter: 0.5)
        let probedAt = instant + .seconds(seconds)
        let mayProbe = health.breaker.beginProbe(at: probedAt, deadline: .seconds(20))
        #expect(mayProbe)
        let effect = health.add([successes(1, at: start)], at: start, instant: probedAt)
        #expect(effect.breakerChange == .closed && effect.endsOutage == (seconds >= 10))
    }
}

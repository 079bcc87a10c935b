import Base
import Testing

@testable import Scheduler

struct BreakerTests {
    private static let start = BootInstant(milliseconds: 1_000_000)
    private static let deadline = Duration.seconds(15)

    private static func after(_ seconds: Double) -> BootInstant { start + .seconds(seconds) }

    /// Returns a breaker that the endpoint's failures have opened; a jitter of a half is none.
    private static func opened() -> Breaker {
        var breaker = Breaker()
        for index in 0..<20 { _ = breaker.endpointFailed(grant: Int64(index), at: start, jitter: 0.5) }
        return breaker
    }

    @Test("A new breaker allows all requests")
    func closedAtFirst() {
        var breaker = Breaker()
        #expect(breaker.permits(at: Self.start) == .all)
        #expect(breaker.isOpen == false)
        #expect(breaker.reason == nil)
        #expect(breaker.beginProbe(at: Self.start, deadline: Self.deadline) == true)
        #expect(breaker == Breaker())
    }

    @Test("The twentieth failure in a row opens it, once")
    func opensOnFailures() {
        var breaker = Breaker()
        for index in 0..<19 {
            #expect(breaker.endpointFailed(grant: Int64(index), at: Self.start, jitter: 0.5) == nil)
        }
        #expect(breaker.isOpen == false)
        #expect(breaker.endpointFailed(grant: 19, at: Self.start, jitter: 0.5) == .opened(.endpointFailing))
        #expect(breaker.reason == .endpointFailing)
        #expect(breaker.permits(at: Self.start) == .wait(until: Self.after(1)))
        #expect(breaker.endpointFailed(grant: 20, at: Self.after(0.1), jitter: 0.5) == nil)
    }

    @Test("A success between failures restarts the count")
    func successResets() {
        var breaker = Breaker()
        for round in 0..<5 {
            for index in 0..<19 {
                #expect(
                    breaker.endpointFailed(grant: Int64(index), at: Self.start, jitter: 0.5) == nil,
                    "round \(round)"
                )
            }
            #expect(breaker.succeeded() == nil)
            #expect(breaker == Breaker())
        }
    }

    @Test("Nine grants never open it, however often they fail; the tenth does")
    func fewGrants() {
        var breaker = Breaker()
        for failure in 0..<1_000 {
            #expect(breaker.endpointFailed(grant: Int64(failure % 9), at: Self.start, jitter: 0.5) == nil)
        }
        #expect(breaker.endpointFailed(grant: 9, at: Self.start, jitter: 0.5) == .opened(.endpointFailing))
    }

    @Test("A client-level error opens it at once")
    func opensOnClientFault() {
        var breaker = Breaker()
        let change = breaker.clientFault("invalid_client", at: Self.start, jitter: 0.5)
        #expect(change == .opened(.clientFault("invalid_client")))
        #expect(breaker.isOpen)
        // The late answers of the other requests raise no further alarm.
        #expect(breaker.clientFault("invalid_client", at: Self.after(0.1), jitter: 0.5) == nil)
    }

    @Test("Late answers, good or bad, change nothing while it is open and no probe is in flight")
    func lateAnswers() {
        var breaker = Self.opened()
        let before = breaker
        #expect(breaker.endpointFailed(grant: 3, at: Self.after(5), jitter: 0.5) == nil)
        #expect(breaker.clientFault("invalid_client", at: Self.after(5), jitter: 0.5) == nil)
        #expect(breaker.succeeded() == nil)
        #expect(breaker == before)
        #expect(breaker.permits(at: Self.after(5)) == .probeDue)
    }

    @Test("One probe at a time, and none before it is due")
    func oneProbe() {
        var breaker = Self.opened()
        #expect(breaker.beginProbe(at: Self.after(0.999), deadline: Self.deadline) == false)
        #expect(breaker.permits(at: Self.after(1)) == .probeDue)
        #expect(breaker.beginProbe(at: Self.after(1), deadline: Self.deadline) == true)
        #expect(breaker.isOpen)
        #expect(breaker.permits(at: Self.after(1)) == .wait(until: Self.after(16)))
        #expect(breaker.beginProbe(at: Self.after(15.999), deadline: Self.deadline) == false)
    }

    @Test("A probe whose answer is lost is replaced by another after its deadline")
    func lostProbe() {
        var breaker = Self.opened()
        #expect(breaker.beginProbe(at: Self.after(1), deadline: Self.deadline) == true)
        #expect(breaker.beginProbe(at: Self.after(16), deadline: Self.deadline) == true)
        #expect(breaker.permits(at: Self.after(16)) == .wait(until: Self.after(31)))
        #expect(breaker.succeeded() == .closed)
    }

    @Test(
        "A probe that is due later than possible, after the clock was set back, is due now",
        arguments: [false, true]
    )
    func clockSetBack(isProbing: Bool) {
        var breaker = Self.opened()
        if isProbing { #expect(breaker.beginProbe(at: Self.after(1), deadline: Self.deadline) == true) }
        // A step of a few seconds is waited out: clocks differ by as much without one.
        guard case .wait = breaker.permits(at: Self.after(-5)) else {
            Issue.record("a wait that may be true was cut short")
            return
        }
        let early = Self.after(-3600)
        #expect(breaker.permits(at: early) == .probeDue)
        #expect(breaker.beginProbe(at: early, deadline: Self.deadline) == true)
        #expect(breaker.permits(at: early) == .wait(until: early + Self.deadline))
        #expect(breaker.beginProbe(at: early, deadline: Self.deadline) == false)
    }

    @Test("A probe is waited for at most a minute, whatever the deadline")
    func boundedProbe() {
        var breaker = Self.opened()
        #expect(breaker.beginProbe(at: Self.after(1), deadline: .seconds(3600)) == true)
        #expect(breaker.permits(at: Self.after(1)) == .wait(until: Self.after(61)))
    }

    @Test("A probe that succeeds closes it")
    func closes() {
        var breaker = Self.opened()
        #expect(breaker.beginProbe(at: Self.after(1), deadline: Self.deadline) == true)
        #expect(breaker.succeeded() == .closed)
        #expect(breaker == Breaker())
        #expect(breaker.permits(at: Self.after(1)) == .all)
    }

    @Test("Probes that fail come at 1, 2, 4 and then 8 s, a fifth more or less", arguments: [0, 0.5, 0.999])
    func probeBackOff(jitter: Double) {
        var breaker = Breaker()
        var now = Self.start
        _ = breaker.clientFault("invalid_client", at: now, jitter: jitter)
        for expected in [1, 2, 4, 8, 8, 8] {
            guard case .wait(let until) = breaker.permits(at: now) else {
                Issue.record("no wait before a probe after \(expected) s")
                return
            }
            let wait = (until - now).inSeconds
            let jittered = min(Double(expected) * (0.8 + 0.4 * jitter), 8)
            #expect(abs(wait - jittered) < 0.002)
            now = until
            #expect(breaker.beginProbe(at: now, deadline: Self.deadline) == true)
            #expect(breaker.clientFault("invalid_client", at: now, jitter: jitter) == nil)
        }
    }

    @Test("A thousand failed probes do not overflow")
    func manyProbes() {
        var breaker = Self.opened()
        var now = Self.start
        for _ in 0..<1_000 {
            now = now + .seconds(30)
            #expect(breaker.beginProbe(at: now, deadline: Self.deadline) == true)
            #expect(breaker.endpointFailed(grant: 1, at: now, jitter: 0.5) == nil)
        }
        #expect(breaker.permits(at: now) == .wait(until: now + .seconds(8)))
    }

    @Test("A probe that finds another fault of the client reports it; a missing answer keeps the reason")
    func otherReason() {
        var breaker = Self.opened()
        #expect(breaker.beginProbe(at: Self.after(1), deadline: Self.deadline) == true)
        let change = breaker.clientFault("deleted_client", at: Self.after(2), jitter: 0.5)
        #expect(change == .opened(.clientFault("deleted_client")))
        #expect(breaker.permits(at: Self.after(2)) == .wait(until: Self.after(4)))
        #expect(breaker.beginProbe(at: Self.after(4), deadline: Self.deadline) == true)
        #expect(breaker.endpointFailed(grant: 1, at: Self.after(5), jitter: 0.5) == nil)
        #expect(breaker.reason == .clientFault("deleted_client"))
    }

    @Test("It opens again, with the first wait, after it has closed")
    func opensAgain() {
        var breaker = Self.opened()
        for second in [1.0, 31, 61] {
            #expect(breaker.beginProbe(at: Self.after(second), deadline: Self.deadline) == true)
            _ = breaker.endpointFailed(grant: 1, at: Self.after(second), jitter: 0.5)
        }
        #expect(breaker.beginProbe(at: Self.after(91), deadline: Self.deadline) == true)
        #expect(breaker.succeeded() == .closed)
        #expect(breaker.clientFault("invalid_client", at: Self.after(92), jitter: 0.5) != nil)
        #expect(breaker.permits(at: Self.after(92)) == .wait(until: Self.after(93)))
    }
}

import Base
import Testing

@testable import Scheduler

struct PacerTests {
    private static let start = BootInstant(milliseconds: 1_000_000)

    private static func after(_ seconds: Double) -> BootInstant { start + .seconds(seconds) }

    @Test("A full bucket gives a fifth of a second's requests, then one for each that the rate lets through")
    func bucket() {
        var pacer = Pacer(maxRate: 200)
        #expect(pacer.nextAvailable(at: Self.start) == .zero)
        #expect(pacer.take(upTo: 25, at: Self.start) == 25)
        #expect(pacer.take(upTo: 100, at: Self.start) == 15)
        #expect(pacer.take(upTo: 1, at: Self.start) == 0)
        #expect(pacer.nextAvailable(at: Self.start) == .milliseconds(5))
        #expect(pacer.take(upTo: 100, at: Self.after(0.1)) == 20)
        // An hour without requests saves no more than the bucket holds.
        #expect(pacer.take(upTo: 1000, at: Self.after(3600)) == 40)
    }

    @Test("Requests that were sent unasked delay the next ones until the pace has made up for them")
    func charge() {
        var pacer = Pacer(maxRate: 10)
        #expect(pacer.take(upTo: 2, at: Self.start) == 2)
        pacer.charge(5, at: Self.start)
        #expect(pacer.available(at: Self.start) == 0)
        #expect(pacer.take(upTo: 1, at: Self.start) == 0)
        #expect(pacer.nextAvailable(at: Self.start) == .milliseconds(600))
        #expect(pacer.take(upTo: 1, at: Self.after(0.5)) == 0)
        #expect(pacer.take(upTo: 2, at: Self.after(0.6)) == 1)
        pacer.charge(1, at: Self.after(3600))
        #expect(pacer.take(upTo: 2, at: Self.after(3600)) == 1, "saved requests count first")
    }

    @Test("With slow claims, one after the other, the pace is still reached", arguments: [0.001, 0.2, 0.45])
    func slowClaims(seconds: Double) {
        var pacer = Pacer(maxRate: 200)
        pacer.claimTime = .seconds(seconds)
        _ = pacer.take(upTo: 1000, at: Self.start)
        let claims = Int(10 / seconds)
        let taken = (1...claims).reduce(0) { sum, number in
            sum + pacer.take(upTo: 1000, at: Self.after(Double(number) * seconds))
        }
        let wanted = Double(claims) * seconds * 200
        #expect((wanted - 1...wanted + 1).contains(Double(taken)), "\(taken) of \(wanted)")
        // An idle hour saves no more than the bucket holds, and a claim counts for a second at most.
        pacer.claimTime = .seconds(60)
        #expect(pacer.take(upTo: 10_000, at: Self.after(3_600)) == 240)
    }

    @Test("A request for zero or fewer takes nothing")
    func nothingWanted() {
        var pacer = Pacer(maxRate: 5)
        #expect(pacer.take(upTo: 0, at: Self.start) == 0)
        #expect(pacer.take(upTo: -3, at: Self.start) == 0)
        #expect(pacer.take(upTo: 5, at: Self.start) == 1)
    }

    @Test("A clock that reads a little less than before adds nothing and takes nothing away")
    func clockBehind() {
        var pacer = Pacer(maxRate: 10)
        #expect(pacer.take(upTo: 2, at: Self.after(1)) == 2)
        #expect(pacer.take(upTo: 2, at: Self.start) == 0)
        #expect(pacer.take(upTo: 2, at: Self.after(1)) == 0)
        #expect(pacer.take(upTo: 2, at: Self.after(1.1)) == 1)
    }

    @Test("A caller that waits as long as it must finds a request, at any rate", arguments: 1...40)
    func waitingAsRequired(seed: Int) {
        let random = SeededRandom(seed: UInt64(seed))
        let rate = 0.01 + random.nextUnit() * 300
        var pacer = Pacer(maxRate: rate)
        var now = Self.start
        for step in 0..<300 {
            if step % 100 == 99 {
                _ = pacer.throttled(retryAfter: random.nextUnit() < 0.5 ? .seconds(2) : nil, at: now)
            }
            let wait = pacer.nextAvailable(at: now)
            #expect(wait >= .zero, "seed \(seed), step \(step)")
            if wait > .zero {
                #expect(pacer.take(upTo: 1, at: now) == 0, "seed \(seed), step \(step), rate \(rate)")
            }
            now = now + wait
            #expect(pacer.nextAvailable(at: now) == .zero, "seed \(seed), step \(step), rate \(rate)")
            #expect(pacer.take(upTo: 1, at: now) == 1, "seed \(seed), step \(step), rate \(rate)")
        }
    }

    @Test("A request is available after its milliseconds, whatever the rounding")
    func rounding() {
        for milliseconds in 200...2_000 as ClosedRange<Int64> {
            var pacer = Pacer(maxRate: 1000 / Double(milliseconds))
            #expect(pacer.take(upTo: 1, at: Self.start) == 1)
            let due = Self.start + .milliseconds(milliseconds)
            #expect(pacer.take(upTo: 1, at: due) == 1, "one request in \(milliseconds) ms")
        }
    }

    @Test("In any pattern of calls, at most the rate and one bucket goes out", arguments: 1...20)
    func neverMore(seed: Int) {
        let random = SeededRandom(seed: UInt64(seed))
        var pacer = Pacer(maxRate: 200)
        var now = Self.start
        var sent = 0
        while now < Self.after(10) {
            sent += pacer.take(upTo: Int(random.nextBits() % 50), at: now)
            now = now + .milliseconds(Int64(random.nextBits() % 60))
        }
        #expect(sent <= 2_040, "seed \(seed)")
        #expect(sent > 1_500, "seed \(seed)")
    }

    @Test("Throttling halves the ceiling once for answers that arrive together, and again after a second")
    func halving() {
        var pacer = Pacer(maxRate: 200)
        #expect(pacer.throttled(retryAfter: nil, at: Self.start) == true)
        #expect(pacer.ceiling(at: Self.start) == 100)
        for _ in 0..<60 { #expect(pacer.throttled(retryAfter: nil, at: Self.after(0.9)) == false) }
        #expect(pacer.ceiling(at: Self.start) == 100)
        #expect(pacer.throttled(retryAfter: nil, at: Self.after(1)) == true)
        // The recovery of one second is halfway between the two: 101 / 2.
        #expect(pacer.ceiling(at: Self.after(1)) == 50.5)
    }

    @Test("A cut empties the bucket, and the next request comes at the lower rate")
    func cutEmpties() {
        var pacer = Pacer(maxRate: 200)
        _ = pacer.throttled(retryAfter: nil, at: Self.start)
        #expect(pacer.take(upTo: 10, at: Self.start) == 0)
        #expect(pacer.nextAvailable(at: Self.start) == .milliseconds(10))
        #expect(pacer.take(upTo: 100, at: Self.after(60)) == 32)
    }

    @Test("The ceiling never falls below the lowest, nor below a rate that is lower still", arguments: [200, 0.6, 0.1])
    func lowest(rate: Double) {
        var pacer = Pacer(maxRate: rate)
        var now = Self.start
        for _ in 0..<50 {
            _ = pacer.throttled(retryAfter: nil, at: now)
            now = now + .seconds(1)
        }
        #expect(pacer.limits.cut?.ceiling ?? 0 >= min(0.5, rate))
        #expect(pacer.ceiling(at: now) >= min(0.5, rate))
        #expect(pacer.ceiling(at: now) <= rate)
        #expect(pacer.nextAvailable(at: now) <= .seconds(10))
    }

    @Test("At the lowest ceiling throttling changes nothing, and reports that")
    func unchangedAtLowest() {
        var pacer = Pacer(maxRate: 0.4)
        #expect(pacer.throttled(retryAfter: nil, at: Self.start) == false)
        #expect(pacer.ceiling(at: Self.start) == 0.4)
    }

    @Test("The ceiling regains a twentieth of the highest rate in 10 s, up to the whole")
    func recovery() {
        var pacer = Pacer(maxRate: 200)
        _ = pacer.throttled(retryAfter: nil, at: Self.start)
        #expect(pacer.ceiling(at: Self.after(10)) == 110)
        #expect(pacer.ceiling(at: Self.after(50)) == 150)
        #expect(pacer.ceiling(at: Self.after(100)) == 200)
        #expect(pacer.ceiling(at: Self.after(100_000)) == 200)
    }

    @Test("Retry-After is respected, and recovery begins at its end")
    func retryAfter() {
        var pacer = Pacer(maxRate: 200)
        #expect(pacer.throttled(retryAfter: .seconds(30), at: Self.start) == true)
        #expect(pacer.isPaused(at: Self.after(29.999)))
        #expect(pacer.take(upTo: 1, at: Self.after(29.999)) == 0)
        #expect(pacer.nextAvailable(at: Self.start) == .milliseconds(30_010))
        #expect(pacer.isPaused(at: Self.after(30)) == false)
        #expect(pacer.ceiling(at: Self.after(30)) == 100)
        #expect(pacer.take(upTo: 1, at: Self.after(30.01)) == 1)
        #expect(pacer.ceiling(at: Self.after(40)) == 110)
    }

    @Test("A second Retry-After can lengthen the pause but not shorten it, even if the ceiling stays")
    func longerPause() {
        var pacer = Pacer(maxRate: 200)
        _ = pacer.throttled(retryAfter: .seconds(30), at: Self.start)
        #expect(pacer.throttled(retryAfter: .seconds(5), at: Self.after(0.5)) == false)
        #expect(pacer.limits.pausedUntil == Self.after(30))
        #expect(pacer.throttled(retryAfter: .seconds(60), at: Self.after(0.5)) == false)
        #expect(pacer.limits.pausedUntil == Self.after(60.5))
    }

    @Test(
        "Retry-After is limited to an hour, and a missing or negative one causes no pause",
        arguments: [
            (Duration.seconds(3_599), Duration?.some(.seconds(3_599))),
            (.seconds(3_601), .seconds(3_600)),
            (.seconds(Int64.max), .seconds(3_600)),
            (.zero, nil),
            (.seconds(-10), nil),
        ]
    )
    func boundedPause(retryAfter: Duration, pause: Duration?) {
        var pacer = Pacer(maxRate: 200)
        _ = pacer.throttled(retryAfter: retryAfter, at: Self.start)
        #expect(pacer.limits.pausedUntil == pause.map { Self.start + $0 })
    }

    @Test("A pause and a cut that are further ahead than possible, after the clock was set back, are over")
    func clockSetBack() {
        var throttled = Pacer(maxRate: 200)
        _ = throttled.throttled(retryAfter: .seconds(30), at: Self.start)
        var pacer = Pacer(maxRate: 200)
        pacer.limits = throttled.limits
        // Half an hour earlier the pause could still be true; the cut could not.
        let earlier = Self.after(-1800)
        #expect(pacer.isPaused(at: earlier))
        #expect(pacer.ceiling(at: earlier) == 200)
        let early = Self.after(-7200)
        #expect(pacer.isPaused(at: early) == false)
        #expect(pacer.nextAvailable(at: early) == .zero)
        #expect(pacer.take(upTo: 100, at: early) == 40)
        // It can be throttled again, and no limit of the time before comes back.
        #expect(pacer.throttled(retryAfter: .seconds(5), at: early) == true)
        #expect(pacer.limits.pausedUntil == early + .seconds(5))
        #expect(pacer.ceiling(at: early) == 100)
    }

    @Test("A bucket continues to fill from the time that a clock was set back to")
    func bucketSetBack() {
        var pacer = Pacer(maxRate: 200)
        #expect(pacer.take(upTo: 100, at: Self.start) == 40)
        let early = Self.after(-3600)
        #expect(pacer.take(upTo: 100, at: early) == 0)
        #expect(pacer.nextAvailable(at: early) == .milliseconds(5))
        #expect(pacer.take(upTo: 100, at: early + .milliseconds(100)) == 20)
    }

    @Test("A pacer that takes over the limits of another has its ceiling and its pause")
    func sharing() {
        var first = Pacer(maxRate: 200)
        _ = first.throttled(retryAfter: .seconds(3), at: Self.start)
        var second = Pacer(maxRate: 120)
        second.limits = first.limits
        #expect(second.take(upTo: 1, at: Self.after(2)) == 0)
        #expect(second.ceiling(at: Self.after(3)) == 100)
        // Its bucket was full, and holds no more than a fifth of a second at the shared ceiling.
        #expect(second.take(upTo: 100, at: Self.after(3)) == 20)
        // Its own highest rate still binds it.
        #expect(second.ceiling(at: Self.after(1000)) == 120)
        // And the other way round: the rate of a slower one, which was never cut, does not slow a faster one.
        first.limits = Pacer(maxRate: 1).limits
        #expect(first.ceiling(at: Self.start) == 200)
    }

    @Test("A new highest rate applies from the next request")
    func changeOfRate() {
        var pacer = Pacer(maxRate: 200)
        pacer.changeMaxRate(10)
        #expect(pacer.take(upTo: 100, at: Self.start) == 2)
        #expect(pacer.nextAvailable(at: Self.start) == .milliseconds(100))
        pacer.changeMaxRate(1000)
        #expect(pacer.take(upTo: 1000, at: Self.after(10)) == 200)
    }

    @Test("An absurdly high rate does not limit and does not crash")
    func absurdRate() {
        var pacer = Pacer(maxRate: 1e300)
        #expect(pacer.take(upTo: .max, at: Self.start) == .max)
    }

    @Test("A rate of zero is refused")
    func refusesNothing() async {
        await #expect(processExitsWith: .failure) { _ = Pacer(maxRate: 0) }
    }

    @Test(
        "Workers that share a rate get equal parts of it, and of the ceiling when the endpoint has throttled",
        arguments: 1...5
    )
    func sharing(workerCount: Int) {
        let start = BootInstant(milliseconds: 1_000_000)
        var limits = Pacer.Limits()
        for isThrottled in [false, true] {
            if isThrottled {
                var throttled = Pacer(maxRate: 300)
                _ = throttled.throttled(retryAfter: nil, at: start)
                limits = throttled.limits
            }
            var sent = 0
            for _ in 0..<workerCount {
                var pacer = Pacer(maxRate: 300)
                pacer.workerCount = workerCount
                pacer.limits = limits
                // The bucket is emptied first, so that only the requests that the rate allows are counted.
                _ = pacer.take(upTo: 1_000, at: start)
                for tick in 1...100 { sent += pacer.take(upTo: 1_000, at: start + .milliseconds(tick * 20)) }
            }
            // Two seconds; a ceiling that was halved has regained a hundredth of the rate by their end.
            let expected = isThrottled ? 302.0 : 600
            #expect(abs(Double(sent) - expected) <= Double(workerCount) + 3, "\(sent)")
        }
    }
}

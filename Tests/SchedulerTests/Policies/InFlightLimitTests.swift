import Base
import Testing

@testable import Scheduler

struct InFlightLimitTests {
    private let start = BootInstant(milliseconds: 1_000_000)

    /// Returns `true` if the limit is twice the latency's need; a latency is known to an eighth, and rounded up.
    private func isTwice(_ latency: Duration, at rate: Double, _ limit: Int) -> Bool {
        let wanted = rate * latency.inSeconds * 2
        return (wanted.rounded(.up)...(wanted * 1.126).rounded(.up)).contains(Double(limit))
    }

    @Test("Without measurements the minimum applies, and the maximum always does")
    func bounds() {
        var limit = InFlightLimit(maximum: 512)
        #expect(limit.limit(at: 100_000) == 64)
        limit.recordAnswer(.milliseconds(1), at: start)
        #expect(limit.limit(at: 3_400) == 64)
        limit.recordAnswer(.milliseconds(100), at: start + .seconds(60))
        limit.recordAnswer(.milliseconds(100), at: start + .seconds(60))
        #expect(limit.limit(at: 200) == 64)
        limit.recordAnswer(.seconds(500), at: start + .seconds(120))
        #expect(limit.limit(at: 3_400) == 512)
        #expect(InFlightLimit(maximum: 1).limit(at: 100) == 1)
    }

    @Test(
        "The limit is what the rate asks for at the endpoint's latency, twice over",
        arguments: [Duration.milliseconds(1), .milliseconds(8), .milliseconds(50), .milliseconds(2_047), .seconds(60)]
    )
    func latencies(latency: Duration) {
        let rate = 1_000 / latency.inSeconds
        var limit = InFlightLimit(maximum: 10_000)
        limit.recordAnswer(latency, at: start)
        #expect(isTwice(latency, at: rate, limit.limit(at: rate)), "\(limit.limit(at: rate))")
    }

    @Test("A few immediate answers, one in sixty or in five, do not lower the latency", arguments: [60, 5])
    func quickOnes(every interval: Int) {
        var limit = InFlightLimit(maximum: 4_096)
        for number in 1...600 {
            limit.recordAnswer(number.isMultiple(of: interval) ? .milliseconds(1) : .milliseconds(500), at: start)
        }
        #expect(isTwice(.milliseconds(500), at: 2_000, limit.limit(at: 2_000)), "\(limit.limit(at: 2_000))")
    }

    @Test("Queued answers, two in three, do not raise it")
    func slowOnes() {
        var limit = InFlightLimit(maximum: 4_096)
        for number in 1...600 {
            limit.recordAnswer(number.isMultiple(of: 3) ? .milliseconds(100) : .milliseconds(1_500), at: start)
        }
        #expect(isTwice(.milliseconds(100), at: 2_000, limit.limit(at: 2_000)), "\(limit.limit(at: 2_000))")
    }

    @Test("The time that the store takes for a claim, and twice that of a commit, count with the endpoint's")
    func slowStore() {
        var limit = InFlightLimit(maximum: 4_096)
        for _ in 1...100 {
            limit.recordAnswer(.milliseconds(10), at: start)
            limit.recordClaim(.milliseconds(200), at: start)
            limit.recordCommit(.milliseconds(200), at: start)
        }
        #expect(isTwice(.milliseconds(610), at: 500, limit.limit(at: 500)), "\(limit.limit(at: 500))")
    }

    @Test("An endpoint that became slower is detected after a while")
    func forgets() {
        var limit = InFlightLimit(maximum: 512)
        for _ in 1...1000 { limit.recordAnswer(.milliseconds(1), at: start) }
        for second in 1...9 { limit.recordAnswer(.milliseconds(100), at: start + .seconds(second)) }
        #expect(limit.limit(at: 2_000) == 64)
        for second in 10...20 { limit.recordAnswer(.milliseconds(100), at: start + .seconds(second)) }
        #expect(isTwice(.milliseconds(100), at: 2_000, limit.limit(at: 2_000)), "\(limit.limit(at: 2_000))")
    }
}

import Base
import Testing

@testable import Scheduler

struct BackOffTests {
    private let backOff = RefreshRules(maxRate: 200).backOff

    @Test(
        "The cap doubles from 10 s to 10 min and stays there",
        arguments: [
            (Int.min, 10), (0, 10), (1, 10), (2, 20), (3, 40), (4, 80), (5, 160), (6, 320), (7, 600), (8, 600),
            (64, 600), (100_000, 600), (Int.max, 600),
        ]
    )
    func cap(failures: Int, seconds: Int) {
        // A jitter of zero gives the longest wait.
        #expect(backOff.delay(failures: failures, remainingLife: nil, jitter: 0) == .seconds(seconds))
        #expect(backOff.delay(failures: failures, remainingLife: nil, jitter: 0.5) == .seconds(seconds) / 2)
    }

    @Test("Other caps are respected, even if the first is beyond the longest")
    func otherCaps() {
        let quick = BackOff(first: .seconds(2), maximum: .seconds(5))
        let waits = (1...4).map { quick.delay(failures: $0, remainingLife: nil, jitter: 0) }
        #expect(waits == [.seconds(2), .seconds(4), .seconds(5), .seconds(5)])
        let odd = BackOff(first: .seconds(50), maximum: .seconds(5))
        #expect(odd.delay(failures: 1, remainingLife: nil, jitter: 0) == .seconds(5))
    }

    @Test(
        "While the token is live, a retry waits at most a third of its remaining life, and at least a second",
        arguments: [
            (Duration.seconds(3000), Duration.seconds(600)),
            (.seconds(900), .seconds(300)),
            (.seconds(60), .seconds(20)),
            (.seconds(3), .seconds(1)),
            (.milliseconds(10), .seconds(1)),
            // An expired token has no life to divide.
            (.zero, .seconds(600)),
            (.seconds(-60), .seconds(600)),
        ]
    )
    func remainingLife(life: Duration, longest: Duration) {
        #expect(backOff.delay(failures: 20, remainingLife: life, jitter: 0) == longest)
    }

    @Test("The wait is spread over the whole cap, never below a second", arguments: 1...10)
    func jitter(seed: Int) {
        let random = SeededRandom(seed: UInt64(seed))
        let cap = Duration.seconds(80)
        let waits = (0..<2_000).map { _ in
            backOff.delay(failures: 4, remainingLife: nil, jitter: random.nextUnit())
        }
        #expect(waits.allSatisfy { $0 >= .seconds(1) && $0 <= cap }, "seed \(seed)")
        let firstHalf = waits.count { $0 <= cap / 2 }
        #expect((850...1_150).contains(firstHalf), "seed \(seed)")
    }

    @Test("The jitter is spread evenly over a short life too")
    func jitterWithinLife() {
        #expect(backOff.delay(failures: 20, remainingLife: .seconds(60), jitter: 0.5) == .seconds(10))
    }

    @Test("A wait is at least a second for any random number")
    func shortest() {
        #expect(backOff.delay(failures: 1, remainingLife: nil, jitter: 0.999_999) == .seconds(1))
    }

    @Test("An unknown answer is retried as usual for a day, then hourly")
    func unknown() {
        func delay(after failingFor: Duration, jitter: Double, life: Duration? = nil) -> Duration {
            backOff.delayForUnknown(failures: 9, failingFor: failingFor, remainingLife: life, jitter: jitter)
        }
        let day = Duration.seconds(86_400)
        #expect(delay(after: .zero, jitter: 0) == .seconds(600))
        #expect(delay(after: day - .milliseconds(1), jitter: 0.5) == .seconds(300))
        #expect(delay(after: day, jitter: 0) == .seconds(3600))
        #expect(delay(after: day * 30, jitter: 0.5) == .seconds(3300))
        // A token may still be live: the app may have brought another one since.
        #expect(delay(after: day, jitter: 0, life: .seconds(900)) == .seconds(300))
        #expect(delay(after: day, jitter: 0, life: .milliseconds(5)) == .seconds(1))
    }

    @Test(
        "At most as many failures count as the doubling allows",
        arguments: [(0, 1), (9, 1), (10, 2), (19, 2), (20, 3), (40, 4), (320, 7), (1_000_000_000_000, 31)]
    )
    func failuresWithin(seconds: Int, failures: Int) {
        #expect(backOff.failures(within: .seconds(seconds)) == failures)
    }
}

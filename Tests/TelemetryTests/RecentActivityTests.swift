import TestSupport
import Testing

@testable import Base
@testable import Telemetry

@Suite("The refreshes of the last hour")
struct RecentActivityTests {
    private typealias Minute = RecentActivity.Minute

    /// The instant at which a minute since boot begins.
    private static let begin = BootInstant(milliseconds: 20 * 60_000)

    private let time = ManualTime(sinceBoot: begin)
    private let counters: IntervalCounters

    init() {
        counters = IntervalCounters(time: time)
    }

    private var minutes: [Minute] { counters.minutes }

    private func record(_ outcomes: RefreshOutcome..., lateness: Duration = .zero) {
        counters.record(outcomes.map { CountedRefresh($0, lateness: lateness) })
    }

    @Test("are none at first")
    func none() {
        #expect(minutes == Array(repeating: Minute(), count: 60))
    }

    @Test("count successes, all other tries, and the latest of them, in the minute in which they ended")
    func counts() {
        record(.refreshed, .refreshed, .retrying, lateness: .milliseconds(40))
        time.advance(by: .milliseconds(59_999))
        record(.disconnected, .lostLease, lateness: .seconds(3))
        record(.refreshed, lateness: .milliseconds(-5))
        let first = Minute(refreshed: 3, failed: 3, longestLateness: .seconds(3))
        #expect(minutes.last == first)
        time.advance(by: .milliseconds(1))
        #expect(Array(minutes.suffix(2)) == [first, Minute()])
        record(.refreshed, lateness: .milliseconds(-5))
        #expect(Array(minutes.suffix(2)) == [first, Minute(refreshed: 1)])
    }

    @Test("leave after an hour, the oldest first")
    func order() {
        for minute in 1...60 {
            if minute > 1 { time.advance(by: .seconds(60)) }
            for _ in 0..<minute { record(.refreshed) }
        }
        #expect(minutes.map(\.refreshed) == Array(1...60))
        time.advance(by: .seconds(60))
        #expect(minutes.map(\.refreshed) == Array(2...60) + [0])
        time.advance(by: .seconds(58 * 60))
        #expect(minutes.map(\.refreshed) == [60] + Array(repeating: 0, count: 59))
    }

    @Test("are forgotten after a gap of an hour, such as while the machine slept", arguments: [60, 61, 1_000_000])
    func gap(minutes gap: Int) {
        record(.refreshed)
        time.advance(by: .seconds(60 * gap))
        #expect(minutes == Array(repeating: Minute(), count: 60))
        record(.retrying)
        #expect(minutes.map(\.failed) == Array(repeating: 0, count: 59) + [1])
    }

    @Test("do not move when the wall clock is stepped")
    func step() {
        record(.refreshed)
        time.stepWallClock(by: .seconds(-86_400))
        record(.refreshed)
        #expect(minutes.last == Minute(refreshed: 2))
    }
}

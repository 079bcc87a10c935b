import TestSupport
import Testing

@testable import Base
@testable import Telemetry

@Suite("The recent refreshes")
struct RecentActivityTests {
    private typealias Slot = RecentActivity.Slot

    private let time = ManualTime()
    private let counters: EventCounters

    init() {
        counters = EventCounters(time: time)
        // To the start of an hour.
        time.advance(by: .milliseconds(3_600_000 - time.now.milliseconds % 3_600_000))
    }

    private func slots(_ scale: RecentActivity.Scale = .minute) -> [Slot] {
        counters.activity.slots(by: scale, at: time.now).map(\.slot)
    }

    private func record(_ outcomes: RefreshOutcome..., lateness: Duration = .zero) {
        counters.record(outcomes.map { CountedRefresh(outcome: $0, lateness: lateness, latency: nil) })
    }

    @Test("are none at first")
    func none() {
        #expect(slots() == Array(repeating: Slot(), count: 60))
        #expect(slots(.hour) == Array(repeating: Slot(), count: 24))
        #expect(counters.activity.isEmpty)
    }

    @Test("count successes, all other tries, and the latest of them, in the minute and the hour in which they ended")
    func counts() {
        record(.refreshed, .refreshed, .retrying, lateness: .milliseconds(40))
        time.advance(by: .milliseconds(59_999))
        record(.disconnected, .lostLease, lateness: .seconds(3))
        record(.refreshed, lateness: .milliseconds(-5))
        let first = Slot(refreshed: 3, failed: 3, maximumLateness: .seconds(3))
        #expect(slots().last == first)
        time.advance(by: .milliseconds(1))
        #expect(Array(slots().suffix(2)) == [first, Slot()])
        record(.refreshed, lateness: .milliseconds(-5))
        #expect(Array(slots().suffix(2)) == [first, Slot(refreshed: 1)])
        #expect(slots(.hour).last == Slot(refreshed: 4, failed: 3, maximumLateness: .seconds(3)))
    }

    @Test("leave the minutes after an hour, and the hours after a day, the oldest first")
    func order() {
        for minute in 1...60 {
            if minute > 1 { time.advance(by: .seconds(60)) }
            for _ in 0..<minute { record(.refreshed) }
        }
        #expect(slots().map(\.refreshed) == Array(1...60))
        time.advance(by: .seconds(60))
        #expect(slots().map(\.refreshed) == Array(2...60) + [0])
        #expect(Array(slots(.hour).map(\.refreshed).suffix(2)) == [1830, 0])
        time.advance(by: .seconds(22 * 3600))
        #expect(slots(.hour).first?.refreshed == 1830 && slots() == Array(repeating: Slot(), count: 60))
        time.advance(by: .seconds(3600))
        #expect(slots(.hour).first?.refreshed == 0)
    }

    @Test("are added up over workers, and what is too old or in the future is forgotten")
    func sum() {
        record(.refreshed, lateness: .seconds(1))
        let mine = counters.takeActivity()
        #expect(counters.activity.isEmpty)
        var all = mine
        record(.refreshed, .retrying, lateness: .seconds(2))
        all.add(counters.takeActivity(), at: time.now)
        let sum = Slot(refreshed: 2, failed: 1, maximumLateness: .seconds(2))
        #expect(all.slots(by: .minute, at: time.now).last?.slot == sum)
        var later = RecentActivity()
        later.add(all, at: time.now + .seconds(86_400))
        #expect(later.text.isEmpty)
        var earlier = RecentActivity()
        earlier.add(all, at: time.now - .seconds(7200))
        #expect(earlier.text.isEmpty)
        counters.restore(mine)
        #expect(counters.activity == mine)
    }

    @Test("are read back as they were stored, without the lines that cannot be read")
    func text() {
        record(.refreshed, .retrying, lateness: .milliseconds(1234))
        time.advance(by: .seconds(60))
        record(.refreshed)
        let activity = counters.activity
        #expect(RecentActivity(activity.text) == activity)
        let unreadable = "\nweek 1 2 3 4\nminute 1\nminute a b c d\nminute 1 9000000000000000000 0 0\n"
        #expect(RecentActivity(activity.text + unreadable) == activity)
    }
}

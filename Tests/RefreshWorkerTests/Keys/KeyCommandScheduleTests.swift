import Base
import Testing

@testable import RefreshWorker

@Suite("The key command runs again")
struct KeyCommandScheduleTests {
    private let first = KeyCommandSchedule.FileVersion(inode: 1, size: 10, modifiedAt: 100)
    private let second = KeyCommandSchedule.FileVersion(inode: 2, size: 10, modifiedAt: 100)
    private let start = BootInstant(milliseconds: 0)

    @Test("if its file is replaced, appears or disappears, and not for the same file")
    func changed() {
        var schedule = KeyCommandSchedule()
        schedule.began(with: first)
        schedule.ended(hasFailed: false, at: start)
        #expect(!schedule.isDue(for: first, at: start + .seconds(1_000_000)))
        #expect(schedule.isDue(for: second, at: start))
        #expect(schedule.isDue(for: nil, at: start))
        schedule.began(with: nil)
        #expect(!schedule.isDue(for: nil, at: start))
        #expect(schedule.isDue(for: first, at: start))
    }

    @Test("once after a request")
    func requested() {
        var schedule = KeyCommandSchedule()
        schedule.began(with: first)
        schedule.ended(hasFailed: false, at: start)
        schedule.request()
        #expect(schedule.isDue(for: first, at: start))
        schedule.began(with: first)
        #expect(!schedule.isDue(for: first, at: start))
    }

    @Test("after a failure, with longer and longer pauses up to a limit, and a success forgets them")
    func backOff() {
        var schedule = KeyCommandSchedule()
        var now = start
        var pauses: [Duration] = []
        for _ in 0..<8 {
            schedule.began(with: first)
            #expect(!schedule.isDue(for: first, at: now), "while it runs")
            schedule.ended(hasFailed: true, at: now)
            let pause = pause(of: schedule, for: first, after: now)
            pauses.append(pause)
            now = now + pause
        }
        #expect(pauses == [10, 20, 40, 80, 160, 300, 300, 300].map { .seconds($0) })
        schedule.began(with: first)
        schedule.ended(hasFailed: false, at: start)
        #expect(!schedule.isDue(for: first, at: now + .seconds(1000)))
        schedule.ended(hasFailed: true, at: now)
        #expect(schedule.isDue(for: first, at: now + .seconds(10)))
    }

    @Test("while other workers seal with a key that it did not print, with longer and longer pauses")
    func unfit() {
        var schedule = KeyCommandSchedule()
        schedule.began(with: nil)
        schedule.ended(hasFailed: false, at: start)
        var now = start + .seconds(1000)
        schedule.observe(isUnfit: true)
        #expect(schedule.isDue(for: nil, at: now), "no pause if the last run was long ago")
        var pauses: [Duration] = []
        for _ in 0..<7 {
            schedule.began(with: nil)
            schedule.ended(hasFailed: false, at: now)
            schedule.observe(isUnfit: true)
            let pause = pause(of: schedule, for: nil, after: now)
            pauses.append(pause)
            now = now + pause
        }
        #expect(pauses == [20, 40, 80, 160, 300, 300, 300].map { .seconds($0) })
        schedule.observe(isUnfit: false)
        #expect(!schedule.isDue(for: nil, at: now + .seconds(1000)))
        schedule.observe(isUnfit: true)
        schedule.began(with: nil)
        schedule.ended(hasFailed: false, at: now)
        #expect(pause(of: schedule, for: nil, after: now) == .seconds(20), "the pauses begin again")
    }

    @Test("soon, if a long time without success has just ended", arguments: [true, false])
    func afterLongPause(wasUnfit: Bool) {
        var schedule = KeyCommandSchedule()
        var now = start
        for _ in 0..<8 {
            schedule.began(with: nil)
            schedule.ended(hasFailed: !wasUnfit, at: now)
            schedule.observe(isUnfit: wasUnfit)
            now = now + .seconds(300)
        }
        schedule.began(with: nil)
        schedule.ended(hasFailed: false, at: now)
        schedule.observe(isUnfit: false)
        // Another worker seals with a new key.
        schedule.observe(isUnfit: true)
        #expect(pause(of: schedule, for: nil, after: now) == .seconds(10))
    }

    private func pause(
        of schedule: KeyCommandSchedule,
        for version: KeyCommandSchedule.FileVersion?,
        after now: BootInstant
    ) -> Duration {
        var pause = Duration.zero
        while !schedule.isDue(for: version, at: now + pause) { pause += .seconds(1) }
        return pause
    }
}

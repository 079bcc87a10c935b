import Base
import Storage
import Testing

@testable import Scheduler

@Suite("The detection of clock steps")
struct ClockMonitorTests {
    private func reading(_ wall: Int, boot: Int, bootID: String = "boot") -> ClockReading {
        ClockReading(
            now: start + .seconds(wall),
            sinceBoot: BootInstant(milliseconds: Int64(boot) * 1000),
            bootID: bootID
        )
    }

    @Test("The first reading of a new database is recorded; later ones are compared at most once a second")
    func first() {
        var monitor = ClockMonitor()
        #expect(monitor.isFirst && !monitor.mayRecord)
        #expect(monitor.compare(reading(0, boot: 0), stored: nil) == .record)
        #expect(!monitor.isFirst && monitor.mayRecord)
        #expect(!monitor.isDue(at: reading(0, boot: 0)) && monitor.isDue(at: reading(1, boot: 1)))
        #expect(monitor.compare(reading(62, boot: 60), stored: nil) == .nothing, "two seconds are tolerated")
    }

    @Test("A step is detected again until it is repaired, and is new once", arguments: [3600, -3600])
    func step(seconds: Int) {
        var monitor = ClockMonitor()
        _ = monitor.compare(reading(0, boot: 0), stored: nil)
        let step = Duration.seconds(seconds)
        #expect(monitor.compare(reading(1 + seconds, boot: 1), stored: nil) == .repair(step: step, isNew: true))
        #expect(!monitor.mayRecord)
        #expect(monitor.compare(reading(2 + seconds, boot: 2), stored: nil) == .repair(step: step, isNew: false))
        monitor.repaired()
        #expect(monitor.mayRecord && monitor.compare(reading(3 + seconds, boot: 3), stored: nil) == .nothing)
    }

    @Test("A new process compares with the stored reading; after a restart of the machine only a step back shows")
    func stored() {
        var monitor = ClockMonitor()
        let stored = reading(7200, boot: 100)
        #expect(
            monitor.compare(reading(3700, boot: 200), stored: stored) == .repair(step: .seconds(-3600), isNew: true)
        )
        monitor = ClockMonitor()
        let forward = reading(90_000, boot: 5, bootID: "next boot")
        #expect(monitor.compare(forward, stored: stored) == .record)
        monitor = ClockMonitor()
        let back = reading(0, boot: 5, bootID: "next boot")
        #expect(monitor.compare(back, stored: stored) == .repair(step: .seconds(-7200), isNew: true))
    }
    @Test("The time without steps ignores steps forward until they are undone, and the time while the machine was off")
    func timeWithoutSteps() {
        var monitor = ClockMonitor()
        let stored = reading(0, boot: 100)
        #expect(monitor.timeWithoutSteps(at: stored) == nil)
        _ = monitor.compare(reading(3610, boot: 110), stored: stored)
        #expect(monitor.timeWithoutSteps(at: reading(3611, boot: 111)) == start + .seconds(11))
        // A step since the last comparison.
        #expect(monitor.timeWithoutSteps(at: reading(7212, boot: 112)) == start + .seconds(12))
        monitor.repaired()
        _ = monitor.compare(reading(20, boot: 120), stored: nil)
        #expect(monitor.timeWithoutSteps(at: reading(20, boot: 120)) == start + .seconds(20))

        monitor = ClockMonitor()
        _ = monitor.compare(reading(90_000, boot: 5, bootID: "next boot"), stored: stored)
        #expect(monitor.timeWithoutSteps(at: reading(90_010, boot: 15, bootID: "next boot")) == start + .seconds(10))
        // The clock was behind when the machine started, and is set.
        monitor = ClockMonitor()
        _ = monitor.compare(reading(-9000, boot: 5, bootID: "next boot"), stored: stored)
        #expect(monitor.timeWithoutSteps(at: reading(30, boot: 15, bootID: "next boot")) == start + .seconds(10))
    }
}

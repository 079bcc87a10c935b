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
}

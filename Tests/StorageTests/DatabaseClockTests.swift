import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("The database's clock is estimated from readings that each took a while")
struct DatabaseClockTests {
    private func instant(_ milliseconds: Int64) -> BootInstant { BootInstant(milliseconds: milliseconds) }
    private func time(_ milliseconds: Int64) -> Timestamp { Timestamp(milliseconds: milliseconds) }

    @Test("A reading counts for the middle of its round trip and is continued by the boot clock")
    func middle() {
        var estimate = ClockEstimate()
        #expect(estimate.time(at: instant(5)) == nil)
        estimate.take(time(100_000), sentAt: instant(1_000), receivedAt: instant(1_020))
        #expect(estimate.time(at: instant(1_010)) == time(100_000))
        #expect(estimate.time(at: instant(3_010)) == time(102_000))
    }

    @Test("A reading that took long does not replace a better one, until that has aged")
    func quality() {
        var estimate = ClockEstimate()
        estimate.take(time(100_000), sentAt: instant(0), receivedAt: instant(2))
        estimate.take(time(101_300), sentAt: instant(1_000), receivedAt: instant(2_000))
        #expect(estimate.time(at: instant(2_001)) == time(102_000))
        // After a day the first may be off by 8.6 s, the second by 0.5 s.
        estimate.take(time(86_500_300), sentAt: instant(86_400_000), receivedAt: instant(86_401_000))
        #expect(estimate.time(at: instant(86_400_500)) == time(86_500_300))
    }

    @Test("A step of the database's clock is applied at once, however long its reading took")
    func step() {
        var estimate = ClockEstimate()
        estimate.take(time(100_000), sentAt: instant(0), receivedAt: instant(2))
        estimate.take(time(3_701_000), sentAt: instant(500), receivedAt: instant(1_500))
        #expect(estimate.time(at: instant(1_000)) == time(3_701_000))
    }

    @Test("Machines whose clocks are an hour apart agree on the database's time")
    func agreement() {
        let ahead = ManualTime(now: time(3_600_000), sinceBoot: instant(7))
        let behind = ManualTime(now: time(0), sinceBoot: instant(90_000_000))
        let clocks = [ahead, behind].map { local in
            let clock = DatabaseClock(local: local)
            clock.take(time(500_000), sentAt: local.sinceBoot, receivedAt: local.sinceBoot)
            local.advance(by: .seconds(10))
            local.stepWallClock(by: .seconds(99))
            return clock
        }
        #expect(clocks.map(\.now) == [time(510_000), time(510_000)])
    }
}

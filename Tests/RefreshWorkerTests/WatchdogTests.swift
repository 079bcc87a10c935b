import Clocks
import Testing

@testable import WorkerLifecycle

@Suite("The watchdog")
struct WatchdogTests {
    private let time = ManualTime()

    @Test("is fed while every loop turns within the interval")
    func feeds() {
        let pulse = LoopHeartbeats(time: time)
        let watchdog = Watchdog(interval: .seconds(60), pulse: pulse, time: time)
        #expect(watchdog.feedingPeriod == .seconds(30))
        for _ in 0..<10 {
            time.advance(by: .seconds(60))
            #expect(watchdog.verdict() == .feed)
            LoopHeartbeats.Loop.allCases.forEach(pulse.beat)
        }
    }

    @Test("is not fed while one loop hangs, and is fed again once it turns", arguments: LoopHeartbeats.Loop.allCases)
    func withholds(hanging: LoopHeartbeats.Loop) {
        let pulse = LoopHeartbeats(time: time)
        let watchdog = Watchdog(interval: .seconds(60), pulse: pulse, time: time)
        time.advance(by: .milliseconds(60_001))
        LoopHeartbeats.Loop.allCases.filter { $0 != hanging }.forEach(pulse.beat)
        #expect(watchdog.verdict() == .withhold(stalled: [hanging]))
        pulse.beat(hanging)
        #expect(watchdog.verdict() == .feed)
    }

    @Test("names all loops that hang")
    func namesAll() {
        let pulse = LoopHeartbeats(time: time)
        let watchdog = Watchdog(interval: .seconds(60), pulse: pulse, time: time)
        time.advance(by: .seconds(61))
        pulse.beat(.scan)
        #expect(watchdog.verdict() == .withhold(stalled: [.http, .store]))
        #expect(!pulse.stalled(since: time.sinceBoot).isEmpty)
    }

    @Test("checks only the loops it was given")
    func watchesSome() {
        let pulse = LoopHeartbeats(loops: [.scan], time: time)
        time.advance(by: .seconds(1))
        pulse.beat(.scan)
        pulse.beat(.http)
        #expect(pulse.stalled(since: time.sinceBoot).isEmpty)
    }

    @Test("with an interval too short for any loop is fed while the loops turn, ten times a second at most")
    func shortInterval() {
        let pulse = LoopHeartbeats(time: time)
        let watchdog = Watchdog(interval: .microseconds(1), pulse: pulse, time: time)
        #expect(watchdog.feedingPeriod == .milliseconds(100))
        time.advance(by: .seconds(20))
        #expect(watchdog.verdict() == .feed)
        time.advance(by: .milliseconds(1))
        #expect(watchdog.verdict() == .withhold(stalled: [.http, .scan, .store]))
    }

    @Test("is not affected by jumps of the wall clock")
    func ignoresWallClock() {
        let watchdog = Watchdog(interval: .seconds(60), pulse: LoopHeartbeats(time: time), time: time)
        time.stepWallClock(by: .seconds(3600))
        #expect(watchdog.verdict() == .feed)
    }
}

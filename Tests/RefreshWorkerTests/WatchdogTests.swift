import Testing

@testable import Base
@testable import Worker

@Suite("The watchdog")
struct WatchdogTests {
    private let time = ManualTime()

    @Test("is fed while every loop runs within the interval")
    func feeds() {
        let heartbeats = LoopHeartbeats(time: time)
        let watchdog = Watchdog(interval: .seconds(60), heartbeats: heartbeats, time: time)
        #expect(watchdog.feedingPeriod == .seconds(30))
        for _ in 0..<10 {
            time.advance(by: .seconds(60))
            #expect(watchdog.decide() == .feed)
            LoopHeartbeats.Loop.allCases.forEach(heartbeats.record)
        }
    }

    @Test(
        "is not fed while one loop is stalled, and is fed again once it runs",
        arguments: LoopHeartbeats.Loop.allCases
    )
    func doesNotFeed(stalled: LoopHeartbeats.Loop) {
        let heartbeats = LoopHeartbeats(time: time)
        let watchdog = Watchdog(interval: .seconds(60), heartbeats: heartbeats, time: time)
        time.advance(by: .milliseconds(60_001))
        LoopHeartbeats.Loop.allCases.filter { $0 != stalled }.forEach(heartbeats.record)
        #expect(watchdog.decide() == .doNotFeed(stalled: [stalled]))
        heartbeats.record(stalled)
        #expect(watchdog.decide() == .feed)
    }

    @Test("names all stalled loops")
    func namesAll() {
        let heartbeats = LoopHeartbeats(time: time)
        let watchdog = Watchdog(interval: .seconds(60), heartbeats: heartbeats, time: time)
        time.advance(by: .seconds(61))
        heartbeats.record(.scan)
        #expect(watchdog.decide() == .doNotFeed(stalled: [.http, .store]))
        #expect(!heartbeats.stalled(since: time.sinceBoot).isEmpty)
    }

    @Test("checks only the loops it was given")
    func monitorsSome() {
        let heartbeats = LoopHeartbeats(loops: [.scan], time: time)
        time.advance(by: .seconds(1))
        heartbeats.record(.scan)
        heartbeats.record(.http)
        #expect(heartbeats.stalled(since: time.sinceBoot).isEmpty)
    }

    @Test("with an interval too short for any loop is fed while the loops run, ten times a second at most")
    func shortInterval() {
        let heartbeats = LoopHeartbeats(time: time)
        let watchdog = Watchdog(interval: .microseconds(1), heartbeats: heartbeats, time: time)
        #expect(watchdog.feedingPeriod == .milliseconds(100))
        time.advance(by: .seconds(20))
        #expect(watchdog.decide() == .feed)
        time.advance(by: .milliseconds(1))
        #expect(watchdog.decide() == .doNotFeed(stalled: [.http, .scan, .store]))
    }

    @Test("is not affected by jumps of the wall clock")
    func ignoresWallClock() {
        let watchdog = Watchdog(interval: .seconds(60), heartbeats: LoopHeartbeats(time: time), time: time)
        time.stepWallClock(by: .seconds(3600))
        #expect(watchdog.decide() == .feed)
    }
}

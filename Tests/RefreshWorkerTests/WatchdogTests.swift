import TestSupport
import Testing

@testable import Base
@testable import RefreshWorker

@Suite("The watchdog")
struct WatchdogTests {
    private let time = ManualTime()

    @Test("is fed while every loop runs within the interval")
    func feeds() {
        let heartbeats = LoopHeartbeats(time: time)
        let interval = Duration.seconds(60)
        #expect(LoopHeartbeats.feedingPeriod(interval) == .seconds(30))
        for _ in 0..<10 {
            time.advance(by: .seconds(60))
            #expect(heartbeats.stalled(within: interval) == [])
            LoopHeartbeats.Loop.allCases.forEach(heartbeats.record)
        }
    }

    @Test(
        "is not fed while one loop is stalled, and is fed again once it runs",
        arguments: LoopHeartbeats.Loop.allCases
    )
    func doesNotFeed(stalled: LoopHeartbeats.Loop) {
        let heartbeats = LoopHeartbeats(time: time)
        let interval = Duration.seconds(60)
        time.advance(by: .milliseconds(60_001))
        LoopHeartbeats.Loop.allCases.filter { $0 != stalled }.forEach(heartbeats.record)
        #expect(heartbeats.stalled(within: interval) == [stalled])
        heartbeats.record(stalled)
        #expect(heartbeats.stalled(within: interval) == [])
    }

    @Test("names all stalled loops")
    func namesAll() {
        let heartbeats = LoopHeartbeats(time: time)
        let interval = Duration.seconds(60)
        time.advance(by: .seconds(61))
        heartbeats.record(.scan)
        #expect(heartbeats.stalled(within: interval) == [.http, .store])
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
        let interval = Duration.microseconds(1)
        #expect(LoopHeartbeats.feedingPeriod(interval) == .milliseconds(100))
        time.advance(by: .seconds(20))
        #expect(heartbeats.stalled(within: interval) == [])
        time.advance(by: .milliseconds(1))
        #expect(heartbeats.stalled(within: interval) == [.http, .scan, .store])
    }

    @Test("is not affected by jumps of the wall clock")
    func ignoresWallClock() {
        let heartbeats = LoopHeartbeats(time: time)
        time.stepWallClock(by: .seconds(3600))
        #expect(heartbeats.stalled(within: .seconds(60)) == [])
    }
}

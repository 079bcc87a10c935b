import TestSupport
import Testing

@testable import Base
@testable import Scheduler

@Suite(.timeLimit(.minutes(10)))
struct WakeTimerTests {
    private static let noon = Timestamp(secondsSince1970: 1_800_000_000)

    struct Case: Sendable {
        let deadline: Timestamp?
        let sleep: Duration
    }

    @Test(
        "The sleep ends at the deadline, but is never longer than the longest and never negative",
        arguments: [
            Case(deadline: nil, sleep: .seconds(30)),
            Case(deadline: noon, sleep: .zero),
            Case(deadline: noon - .seconds(3600), sleep: .zero),
            Case(deadline: Timestamp(milliseconds: .min), sleep: .zero),
            Case(deadline: noon + .milliseconds(1), sleep: .milliseconds(1)),
            Case(deadline: noon + .seconds(29), sleep: .seconds(29)),
            Case(deadline: noon + .seconds(31), sleep: .seconds(30)),
            Case(deadline: Timestamp(milliseconds: .max), sleep: .seconds(30)),
        ]
    )
    func sleeps(_ example: Case) {
        let sleep = WakeTimer.sleep(until: example.deadline, from: Self.noon, atMost: .seconds(30))
        #expect(sleep == example.sleep)
    }

    /// A stream of wakes, and the closure that feeds it.
    private static func wakes() -> (stream: AsyncStream<Void>, onWake: @Sendable () -> Void) {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        return (stream, { continuation.yield() })
    }

    private static func await(_ count: Int, of stream: AsyncStream<Void>) async {
        var seen = 0
        for await _ in stream {
            seen += 1
            if seen == count { return }
        }
    }

    @Test("A past deadline wakes at once, although the longest sleep is an hour")
    func pastDeadline() async {
        let (stream, onWake) = Self.wakes()
        let time = ManualTime()
        let timer = WakeTimer(timeSource: time, maximumSleep: .seconds(3600), onWake: onWake)
        timer.arm(for: time.now - .seconds(5))
        await Self.await(1, of: stream)
        timer.cancel()
    }

    @Test("A future deadline wakes when it has come, and not before")
    func deadlineAhead() async {
        let (stream, onWake) = Self.wakes()
        let time = SystemTime()
        let timer = WakeTimer(timeSource: time, maximumSleep: .seconds(3600), onWake: onWake)
        let started = SystemTime().sinceBoot
        timer.arm(for: time.now + .milliseconds(50))
        await Self.await(1, of: stream)
        #expect(SystemTime().sinceBoot - started >= .milliseconds(48))
        timer.cancel()
    }

    @Test("Arming again replaces the deadline before")
    func rearming() async {
        let (stream, onWake) = Self.wakes()
        let time = ManualTime()
        let timer = WakeTimer(timeSource: time, maximumSleep: .seconds(3600), onWake: onWake)
        timer.arm(for: time.now + .seconds(1800))
        timer.arm(for: time.now)
        await Self.await(1, of: stream)
        timer.cancel()
    }

    @Test("Without a deadline, and after a wake, it continues to wake")
    func keepsWaking() async {
        let (stream, onWake) = Self.wakes()
        let timer = WakeTimer(timeSource: ManualTime(), maximumSleep: .milliseconds(5), onWake: onWake)
        await Self.await(4, of: stream)
        timer.cancel()
    }

    @Test("A cancelled timer stays silent, however often it is cancelled or armed")
    func cancelled() async {
        let (silent, neverWoken) = AsyncStream.makeStream(of: Void.self)
        let time = ManualTime()
        let cancelled = WakeTimer(timeSource: time, maximumSleep: .seconds(3600)) { neverWoken.yield() }
        cancelled.cancel()
        cancelled.cancel()
        cancelled.arm(for: time.now)

        // Another timer's wakes give the first one time to fire, if it were to.
        let (stream, onWake) = Self.wakes()
        let timer = WakeTimer(timeSource: time, maximumSleep: .milliseconds(5), onWake: onWake)
        await Self.await(4, of: stream)
        timer.cancel()

        neverWoken.finish()
        var wakes = 0
        for await _ in silent { wakes += 1 }
        #expect(wakes == 0)
    }

    /// Ends a stream when it is released.
    private final class ReleaseObserver: Sendable {
        let continuation: AsyncStream<Void>.Continuation
        init(_ continuation: AsyncStream<Void>.Continuation) { self.continuation = continuation }
        func use() { continuation.yield() }
        deinit { continuation.finish() }
    }

    @Test("A released timer releases its closure")
    func released() async {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        var timer: WakeTimer?
        do {
            let observer = ReleaseObserver(continuation)
            timer = WakeTimer(timeSource: ManualTime(), maximumSleep: .seconds(3600)) { observer.use() }
        }
        #expect(timer != nil)
        timer = nil
        // Ends only when the closure is released; the time limit catches a leak.
        for await _ in stream {}
    }
}

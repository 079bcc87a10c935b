import Base
private import Dispatch

/// The single timer for all deadlines: wakes its owner for the earliest of them, and at least once per longest sleep.
///
/// The wait is computed from the wall clock each time the timer is armed, and then counts down on the monotonic clock.
/// A timer that waits *on* the wall clock would stop everything when the clock is set back: libdispatch hands an
/// absolute point of `CLOCK_REALTIME` to `timerfd_settime` without `TFD_TIMER_CANCEL_ON_SET`, so a wake that was 30 s
/// away would be an hour and 30 s away (https://github.com/apple/swift-corelibs-libdispatch, src/event/event_epoll.c).
/// With the countdown a wake is never further away than the longest sleep of running time: the owner then reads the
/// clock again and arms the timer again, so a step of the clock or a suspended machine costs at most one such sleep.
final class WakeTimer: Sendable {
    // Never assigned again, and safe to arm and cancel from any thread: libdispatch swaps new settings in and sets the
    // cancelled flag atomically (https://github.com/apple/swift-corelibs-libdispatch, src/source.c).
    private nonisolated(unsafe) let timer: any DispatchSourceTimer
    private let timeSource: any TimeSource
    private let maximumSleep: Duration

    /// Starts a timer that is not yet armed for a deadline and so wakes after each longest sleep.
    ///
    /// - Parameters:
    ///   - timeSource: the wall clock of the deadlines.
    ///   - maximumSleep: the longest time that the timer sleeps, at least a millisecond.
    ///   - onWake: called on the timer's own serial queue, never twice at once. It can arm the timer. It must not
    ///     block, and it is released when the timer is cancelled.
    init(timeSource: any TimeSource, maximumSleep: Duration = .seconds(30), onWake: @escaping @Sendable () -> Void) {
        precondition(maximumSleep >= .milliseconds(1), "a timer that never sleeps")
        self.timeSource = timeSource
        self.maximumSleep = maximumSleep
        timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "scheduler.wake"))
        timer.setEventHandler(handler: onWake)
        arm(for: nil)
        timer.activate()
    }

    deinit { timer.cancel() }

    /// Arms the timer for a deadline, replacing the one armed before.
    ///
    /// It wakes at once if the deadline is past, and after the longest sleep if it is further away or `nil`. From then
    /// on it wakes after each longest sleep until it is armed again.
    func arm(for deadline: Timestamp?) {
        let sleep = Self.sleep(until: deadline, from: timeSource.now, atMost: maximumSleep)
        timer.schedule(deadline: .now() + sleep.dispatchInterval, repeating: maximumSleep.dispatchInterval)
    }

    /// Stops the timer for good.
    ///
    /// Calling it again, or arming the timer afterwards, does nothing.
    ///
    /// A wake that has already begun on the timer's queue runs to its end.
    func cancel() { timer.cancel() }

    /// Returns the time to sleep for a deadline, if there is one.
    static func sleep(until deadline: Timestamp?, from now: Timestamp, atMost maximum: Duration) -> Duration {
        guard let deadline else { return maximum }
        return deadline <= now ? .zero : min(deadline - now, maximum)
    }
}

extension Duration {
    fileprivate var dispatchInterval: DispatchTimeInterval { .milliseconds(Int(wholeMilliseconds)) }
}

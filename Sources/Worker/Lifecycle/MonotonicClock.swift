private import Glibc

/// The clock that systemd asks for in `MONOTONIC_USEC`.
///
/// The rest of the worker uses the boot clock of its `TimeSource`, which also runs while the machine is suspended.
/// systemd compares this number with its own CLOCK_MONOTONIC.
enum MonotonicClock {
    static var microseconds: Int64 {
        var point = timespec()
        // The clock exists on every Linux, so the call cannot fail.
        let result = unsafe clock_gettime(CLOCK_MONOTONIC, &point)  // time: allowed
        precondition(result == 0, "clock_gettime(CLOCK_MONOTONIC) failed with errno \(errno)")
        return Int64(point.tv_sec) * 1_000_000 + Int64(point.tv_nsec) / 1000
    }
}

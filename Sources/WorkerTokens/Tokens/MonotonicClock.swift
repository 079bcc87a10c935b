#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The clock by which tokens expire in this process: it is never set, and runs on while the machine is suspended.
///
/// The clock of Swift with this property would need macOS 13.
enum MonotonicClock {
    #if canImport(Darwin)
        private static let clock = CLOCK_MONOTONIC
    #else
        private static let clock = CLOCK_BOOTTIME
    #endif

    static func seconds() -> Double {
        var time = timespec()
        // The tests pass a clock of their own. Without this clock no token would be kept, which is safe.
        guard clock_gettime(clock, &time) == 0 else { return .infinity }  // time: allowed
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

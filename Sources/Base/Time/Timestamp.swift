/// An instant of the wall clock, in whole milliseconds since 1970.
///
/// Expiry and due times are wall-clock times because Google gives lifetimes and they must survive a restart of the
/// machine. A lease never uses one: see ``BootInstant``.
package struct Timestamp: Hashable, Comparable, Sendable, Codable {
    package let milliseconds: Int64

    /// Limits the number, because one damaged number in the database must not overflow and stop every worker.
    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds.clamped(to: Self.range)
    }

    /// About 285,000 years before and after 1970, also for ``BootInstant``. Sums and differences of two such numbers
    /// fit.
    static let range: ClosedRange<Int64> = -(1 << 53)...1 << 53

    package init(secondsSince1970 seconds: Int64) {
        self.init(milliseconds: seconds.clamped(to: -9_000_000_000_000...9_000_000_000_000) * 1000)
    }

    package static func < (left: Timestamp, right: Timestamp) -> Bool { left.milliseconds < right.milliseconds }

    package static func + (instant: Timestamp, span: Duration) -> Timestamp {
        Timestamp(milliseconds: instant.milliseconds + span.wholeMilliseconds)
    }

    package static func - (instant: Timestamp, span: Duration) -> Timestamp {
        Timestamp(milliseconds: instant.milliseconds - span.wholeMilliseconds)
    }

    package static func - (left: Timestamp, right: Timestamp) -> Duration {
        .milliseconds(left.milliseconds - right.milliseconds)
    }
}

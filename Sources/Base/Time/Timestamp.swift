/// An instant of the wall clock, in whole milliseconds since 1970.
///
/// Expiry and due times are wall-clock times because Google gives lifetimes and they must survive a restart of the
/// machine. A lease never uses one: see ``BootInstant``.
package struct Timestamp: Hashable, Comparable, Sendable, Codable {
    package var milliseconds: Int64

    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

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

extension Duration {
    /// The span in milliseconds, rounded toward zero, limited to about 290 years so that adding it cannot overflow.
    package var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds.clamped(to: -9_000_000_000...9_000_000_000) * 1000 + attoseconds / 1_000_000_000_000_000
    }

    /// The span in seconds, for ratios and for output.
    package var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}

extension Comparable {
    /// Returns the value, or the nearest end of the range if it is outside.
    package func clamped(to range: ClosedRange<Self>) -> Self {
        min(max(self, range.lowerBound), range.upperBound)
    }
}

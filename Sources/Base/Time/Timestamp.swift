private import Glibc

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

    /// About 285,000 years before and after 1970, also for ``BootInstant``.
    ///
    /// Sums and differences of two such numbers fit.
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

extension Duration {
    /// The span in its two largest units, such as `3 h 20 min`.
    package var inTwoUnits: String {
        let seconds = Int64(inSeconds)
        let units: [(name: String, seconds: Int64)] = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)]
        guard let first = units.firstIndex(where: { seconds >= $0.seconds }) else { return "0 s" }
        let whole = "\(seconds / units[first].seconds) \(units[first].name)"
        let rest = seconds % units[first].seconds
        guard first + 1 < units.count, rest >= units[first + 1].seconds else { return whole }
        return "\(whole) \(rest / units[first + 1].seconds) \(units[first + 1].name)"
    }
}

extension Timestamp {
    /// The instant in UTC with milliseconds, as in `2026-11-21T03:17:39.123Z`.
    ///
    /// Such texts sort in the order of their instants.
    ///
    /// An instant outside the years 0 to 9999, which the format cannot represent, shows as the nearest end of that
    /// range.
    package var iso8601: String {
        let clamped = withinFourDigitYears
        var text = clamped.secondsText
        text.append(UInt8(ascii: "."))
        text.append(clamped.milliseconds - clamped.wholeSeconds * 1000, digits: 3)
        text.append(UInt8(ascii: "Z"))
        return String(decoding: text, as: UTF8.self)
    }

    /// The instant in UTC with whole seconds, as in `2026-11-21T03:17:39Z`.
    package var iso8601Seconds: String {
        String(decoding: withinFourDigitYears.secondsText + [UInt8(ascii: "Z")], as: UTF8.self)
    }

    /// The date in UTC, as in `2026-11-21`.
    package var iso8601Date: String { String(iso8601Seconds.prefix(10)) }

    private var withinFourDigitYears: Timestamp {
        Timestamp(milliseconds: milliseconds.clamped(to: -62_167_219_200_000...253_402_300_799_999))
    }

    private var wholeSeconds: Int64 {
        let (quotient, remainder) = milliseconds.quotientAndRemainder(dividingBy: 1000)
        return remainder < 0 ? quotient - 1 : quotient
    }

    private var secondsText: [UInt8] {
        var seconds = time_t(wholeSeconds)
        var parts = unsafe tm()
        unsafe gmtime_r(&seconds, &parts)
        var text: [UInt8] = []
        text.reserveCapacity(24)
        unsafe text.append(Int64(parts.tm_year) + 1900, digits: 4)
        unsafe text.append("-", Int64(parts.tm_mon) + 1)
        unsafe text.append("-", Int64(parts.tm_mday))
        unsafe text.append("T", Int64(parts.tm_hour))
        unsafe text.append(":", Int64(parts.tm_min))
        unsafe text.append(":", Int64(parts.tm_sec))
        return text
    }
}

extension [UInt8] {
    /// Appends the last `digits` decimal digits of a non-negative number.
    fileprivate mutating func append(_ number: Int64, digits: Int) {
        let start = count
        var rest = number
        for _ in 0..<digits {
            insert(UInt8(ascii: "0") + UInt8(rest % 10), at: start)
            rest /= 10
        }
    }

    fileprivate mutating func append(_ separator: Unicode.Scalar, _ number: Int64) {
        append(UInt8(ascii: separator))
        append(number, digits: 2)
    }
}

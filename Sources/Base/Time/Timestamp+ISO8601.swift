private import Glibc

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

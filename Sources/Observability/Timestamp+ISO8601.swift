package import Clocks
private import Glibc

extension Timestamp {
    /// The instant in UTC with milliseconds, as in `2026-11-21T03:17:39.123Z`; such texts sort as their instants do.
    ///
    /// An instant outside the years 0 to 9999, which the format cannot spell, shows as the nearest end of that range.
    package var iso8601: String {
        let clamped = withinFourDigitYears
        let fraction = clamped.milliseconds - clamped.wholeSeconds * 1000
        return "\(clamped.secondsText).\(padded(fraction, to: 3))Z"
    }

    /// The instant in UTC with whole seconds, as in `2026-11-21T03:17:39Z`.
    package var iso8601Seconds: String { "\(withinFourDigitYears.secondsText)Z" }

    private var withinFourDigitYears: Timestamp {
        Timestamp(milliseconds: milliseconds.clamped(to: -62_167_219_200_000...253_402_300_799_999))
    }

    private var wholeSeconds: Int64 {
        let (quotient, remainder) = milliseconds.quotientAndRemainder(dividingBy: 1000)
        return remainder < 0 ? quotient - 1 : quotient
    }

    private var secondsText: String {
        var seconds = time_t(wholeSeconds)
        var parts = unsafe tm()
        unsafe gmtime_r(&seconds, &parts)
        let (year, month, day) = unsafe (Int64(parts.tm_year) + 1900, Int64(parts.tm_mon) + 1, Int64(parts.tm_mday))
        let (hour, minute, second) = unsafe (Int64(parts.tm_hour), Int64(parts.tm_min), Int64(parts.tm_sec))
        let date = "\(padded(year, to: 4))-\(padded(month, to: 2))-\(padded(day, to: 2))"
        return "\(date)T\(padded(hour, to: 2)):\(padded(minute, to: 2)):\(padded(second, to: 2))"
    }

    private func padded(_ number: Int64, to width: Int) -> String {
        let digits = number.description
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}

/// Parses the parts of a date from left to right.
struct DateScanner {
    private var rest: Substring.UTF8View

    init(_ text: String) {
        rest = text[...].utf8
    }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func take(_ choices: Unicode.Scalar...) -> Bool {
        guard let first = rest.first, choices.contains(where: { UInt8(ascii: $0) == first }) else { return false }
        rest.removeFirst()
        return true
    }

    mutating func digits(_ count: Int) -> Int64? {
        var number: Int64 = 0
        for _ in 0..<count {
            guard let digit = digit() else { return nil }
            number = number * 10 + digit
        }
        return number
    }

    /// Parses a date and returns the days since 1970.
    mutating func date() -> Int64? {
        guard let year = digits(4), take("-"), let month = digits(2), take("-"), let day = digits(2) else { return nil }
        return Timestamp.days(toYear: year, month: month, day: day)
    }

    /// Parses a time of day and returns its milliseconds.
    mutating func timeOfDay() -> Int64? {
        guard let hour = digits(2), take(":"), let minute = digits(2), hour < 24, minute < 60 else { return nil }
        let whole = (hour * 60 + minute) * 60_000
        guard take(":") else { return whole }
        guard let seconds = digits(2), seconds <= 60 else { return nil }
        guard take(".", ",") else { return whole + seconds * 1000 }
        return milliseconds().map { whole + seconds * 1000 + $0 }
    }

    private mutating func milliseconds() -> Int64? {
        guard var number = digit() else { return nil }
        var places = 1
        while let next = digit() {
            if places < 3 { number = number * 10 + next }
            places += 1
        }
        return places == 1 ? number * 100 : places == 2 ? number * 10 : number
    }

    /// Parses a zone and returns its minutes east of UTC.
    mutating func zoneOffset() -> Int64? {
        guard !isAtEnd else { return 0 }
        if take("Z", "z") { return 0 }
        let sign: Int64
        if take("+") {
            sign = 1
        } else if take("-") {
            sign = -1
        } else {
            return nil
        }
        guard let hours = digits(2), hours < 24 else { return nil }
        guard !isAtEnd else { return sign * hours * 60 }
        _ = take(":")
        guard let minutes = digits(2), minutes < 60 else { return nil }
        return sign * (hours * 60 + minutes)
    }

    private mutating func digit() -> Int64? {
        guard let first = rest.first, (0x30...0x39).contains(first) else { return nil }
        rest.removeFirst()
        return Int64(first) - 0x30
    }
}

extension Timestamp {
    /// Returns the number of days from 1 January 1970 to a date of the Gregorian calendar, or `nil` if the date does
    /// not exist.
    package static func days(toYear year: Int64, month: Int64, day: Int64) -> Int64? {
        guard (1...12).contains(month), (1...days(inMonth: month, of: year)).contains(day) else { return nil }
        return daysSince1970(year: year, month: month, day: day)
    }

    private static func days(inMonth month: Int64, of year: Int64) -> Int64 {
        let isLeapYear = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        switch month {
        case 2: return isLeapYear ? 29 : 28
        case 4, 6, 9, 11: return 30
        default: return 31
        }
    }

    /// Returns the day's number in the Gregorian calendar, which has 146,097 days in each 400 years.
    private static func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
        // In a year that begins in March, the leap day is the last day, so the months before it have fixed starts.
        let shifted = month > 2 ? year : year - 1
        let monthFromMarch = (month + 9) % 12
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
        let leapDays = floorDivide(shifted, 4) - floorDivide(shifted, 100) + floorDivide(shifted, 400)
        // There are 719,468 days from 1 March of year 0 to 1 January 1970.
        return shifted * 365 + leapDays + dayOfYear - 719_468
    }

    private static func floorDivide(_ number: Int64, _ divisor: Int64) -> Int64 {
        number >= 0 ? number / divisor : -((-number + divisor - 1) / divisor)
    }
}

extension Timestamp {
    /// Parses a date and time as RFC 3339 and Python's `isoformat` write them.
    ///
    /// Without a zone it is UTC.
    ///
    /// A fraction of any length is cut to milliseconds. Seconds can be missing, and 60 in a leap second.
    package init?(iso8601 text: String) {
        var scanner = DateScanner(text)
        guard let days = scanner.date(), scanner.take("T", "t", " "), let time = scanner.timeOfDay(),
            let offset = scanner.zoneOffset(), scanner.isAtEnd
        else { return nil }
        self.init(milliseconds: (days * 1440 - offset) * 60_000 + time)
    }

    /// Parses a date without a time (`2026-01-31`) as its first instant in UTC.
    package init?(iso8601Date text: String) {
        var scanner = DateScanner(text)
        guard let days = scanner.date(), scanner.isAtEnd else { return nil }
        self.init(milliseconds: days * 86_400_000)
    }

    /// Parses a time without a date (`12:34:56.789`), as Python's `str` writes it, and returns the time since midnight.
    package static func timeOfDay(_ text: String) -> Duration? {
        var scanner = DateScanner(text)
        guard let time = scanner.timeOfDay(), scanner.isAtEnd else { return nil }
        return .milliseconds(time)
    }
}

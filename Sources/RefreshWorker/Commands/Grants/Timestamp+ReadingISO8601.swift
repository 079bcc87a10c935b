import Clocks

extension Timestamp {
    /// Reads a date and time as RFC 3339 and Python's `isoformat` write them; without a zone it is UTC.
    ///
    /// A fraction of any length is cut to milliseconds. Seconds may be missing, and 60 in a leap second.
    init?(iso8601 text: String) {
        var scanner = DateScanner(text)
        guard
            let year = scanner.digits(4), scanner.take("-"),
            let month = scanner.digits(2), scanner.take("-"),
            let day = scanner.digits(2), scanner.take("T", "t", " "),
            let hour = scanner.digits(2), scanner.take(":"),
            let minute = scanner.digits(2),
            (1...12).contains(month), hour < 24, minute < 60,
            (1...Self.days(inMonth: month, of: year)).contains(day)
        else { return nil }
        var seconds: Int64 = 0
        var milliseconds: Int64 = 0
        if scanner.take(":") {
            guard let read = scanner.digits(2), read <= 60 else { return nil }
            seconds = read
            if scanner.take(".", ",") {
                guard let fraction = scanner.milliseconds() else { return nil }
                milliseconds = fraction
            }
        }
        guard let offset = scanner.zoneOffset(), scanner.isAtEnd else { return nil }
        let days = Self.daysSince1970(year: year, month: month, day: day)
        let total = ((days * 24 + hour) * 60 + minute - offset) * 60 + seconds
        self.init(milliseconds: total * 1000 + milliseconds)
    }

    private static func days(inMonth month: Int64, of year: Int64) -> Int64 {
        let isLeapYear = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        switch month {
        case 2: return isLeapYear ? 29 : 28
        case 4, 6, 9, 11: return 30
        default: return 31
        }
    }

    /// The day's number in the Gregorian calendar, which has 146,097 days in each 400 years.
    private static func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
        // A year that begins in March has its leap day last, so that the months before it always begin on one day.
        let shifted = month > 2 ? year : year - 1
        let monthFromMarch = (month + 9) % 12
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
        let leapDays = floorDivide(shifted, 4) - floorDivide(shifted, 100) + floorDivide(shifted, 400)
        // 719,468 days lie between 1 March of year 0 and 1 January 1970.
        return shifted * 365 + leapDays + dayOfYear - 719_468
    }

    private static func floorDivide(_ number: Int64, _ divisor: Int64) -> Int64 {
        number >= 0 ? number / divisor : -((-number + divisor - 1) / divisor)
    }
}

/// Reads the parts of a date from left to right.
private struct DateScanner {
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

    mutating func milliseconds() -> Int64? {
        guard var number = digit() else { return nil }
        var places = 1
        while let next = digit() {
            if places < 3 { number = number * 10 + next }
            places += 1
        }
        return places == 1 ? number * 100 : places == 2 ? number * 10 : number
    }

    /// The zone's minutes east of UTC.
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

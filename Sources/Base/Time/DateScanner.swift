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
        guard let first = digit() else { return nil }
        var number = first * 100
        var unit: Int64 = 10
        while let next = digit() {
            number += next * unit
            unit /= 10
        }
        return number
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

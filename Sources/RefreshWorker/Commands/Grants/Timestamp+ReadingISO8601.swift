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
            hour < 24, minute < 60, let days = Self.days(toYear: year, month: month, day: day)
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
        let total = ((days * 24 + hour) * 60 + minute - offset) * 60 + seconds
        self.init(milliseconds: total * 1000 + milliseconds)
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

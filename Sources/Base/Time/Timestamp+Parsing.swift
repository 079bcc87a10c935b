extension Timestamp {
    /// Parses a date and time as RFC 3339 and Python's `isoformat` write them.
    ///
    /// Without a zone it is UTC. A fraction of any length is cut to milliseconds. Seconds can be missing, and 60 in a
    /// leap second.
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

extension HTTPResponse {
    /// No server is obeyed for longer than this at a time.
    private static let longestRetryAfter: Duration = .seconds(3600)

    /// The span that `Retry-After` (RFC 9110 section 10.2.3) asks for in its form of seconds.
    ///
    /// `nil` where the header is missing or is a date, which only a clock that agrees with the server's could tell the
    /// meaning of.
    package var retryAfter: Duration? { Self.retryAfter(header("retry-after")) }

    static func retryAfter(_ header: String?) -> Duration? {
        guard let header, !header.isEmpty, header.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        guard let seconds = Int64(header) else { return longestRetryAfter }
        return min(.seconds(seconds), longestRetryAfter)
    }
}

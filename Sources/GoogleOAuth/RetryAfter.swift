/// The `Retry-After` header (RFC 9110 section 10.2.3) in its form of seconds.
enum RetryAfter {
    /// No server is obeyed for longer than this at a time.
    static let longest: Duration = .seconds(3600)

    /// The span asked for; `nil` where the header is missing or is a date, which only a clock that agrees with the server's
    /// could tell the meaning of.
    static func read(_ header: String?) -> Duration? {
        guard let header, !header.isEmpty, header.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        guard let seconds = Int64(header) else { return longest }
        return min(.seconds(seconds), longest)
    }
}

private import Crypto

extension HTTPResponse {
    /// The cap on any `Retry-After` value.
    private static let longestRetryAfter: Duration = .seconds(3600)

    /// The delay from `Retry-After` (RFC 9110 section 10.2.3), if the header gives it in seconds.
    ///
    /// `nil` if the header is missing, or is a date: a date needs a clock that agrees with the server's.
    package var retryAfter: Duration? { Self.retryAfter(header("retry-after")) }

    static func retryAfter(_ header: String?) -> Duration? {
        guard let header, header.isDecimalNumber else { return nil }
        guard let seconds = Int64(header) else { return longestRetryAfter }
        return min(.seconds(seconds), longestRetryAfter)
    }
}

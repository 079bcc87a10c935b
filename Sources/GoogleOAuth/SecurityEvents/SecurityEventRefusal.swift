/// Why a security event token is not taken.
package enum SecurityEventRefusal: Error, Hashable, Sendable {
    /// The codes of RFC 8935, section 2.4.
    package enum Code: String, Sendable {
        case request = "invalid_request"
        case key = "invalid_key"
        case issuer = "invalid_issuer"
        case audience = "invalid_audience"
    }

    /// The token is no good; the text holds nothing of it.
    case invalid(Code, String)
    /// Google's keys cannot be had now, so nobody can tell.
    case unavailable(retryAfter: Duration)
}

/// The reason why a security event token is not accepted.
package enum SecurityEventRefusal: Error, Hashable, Sendable {
    /// The codes of RFC 8935, section 2.4.
    package enum Code: String, Sendable {
        case request = "invalid_request"
        case key = "invalid_key"
        case issuer = "invalid_issuer"
        case audience = "invalid_audience"
    }

    /// The token is invalid; the text does not quote it.
    case invalid(Code, String)
    /// Google's keys are not available now, so the token cannot be verified.
    case unavailable(retryAfter: Duration)
}

/// An address has asked more often than it may.
struct TooManyRequests: Error, Hashable, Sendable {
    let retryAfter: Duration

    /// Whole seconds, rounded up, so that who waits for them is not refused again.
    var header: (name: String, value: String) {
        let (seconds, attoseconds) = retryAfter.components
        return ("Retry-After", "\(max(1, attoseconds > 0 ? seconds + 1 : seconds))")
    }
}

/// An address has sent more requests than it may.
struct TooManyRequests: Error, Hashable, Sendable {
    let retryAfter: Duration
}

/// An address has asked more often than it may.
struct TooManyRequests: Error, Hashable, Sendable {
    let retryAfter: Duration
}

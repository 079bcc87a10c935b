internal import HTTPServer

extension Duration {
    /// The span as a `Retry-After` in whole seconds, rounded up, so that a client that waits is not refused again.
    var retryAfter: ServerRequest.Field {
        let (seconds, attoseconds) = components
        return ("Retry-After", "\(max(1, attoseconds > 0 ? seconds + 1 : seconds))")
    }
}

/// The time limits for each part of a request.
package struct ConnectionDeadlines: Sendable {
    /// The time from a request's first byte to the end of its headers. The first request includes the TLS handshake.
    var head: Duration = .seconds(10)

    /// The time from a request's first byte to the end of its body.
    var request: Duration = .seconds(30)

    /// How long the client can take to receive a response.
    var response: Duration = .seconds(30)

    /// The time between two requests, while connections are not scarce.
    var idle: Duration = .seconds(60)

    /// Returns the idle time limit for the given number of open connections.
    ///
    /// At the maximum no further client is accepted, so idle connections must end before that. From three quarters of
    /// the maximum on, the limit shrinks gradually to one second.
    func idle(open: Int, of maximum: Int) -> Duration {
        let free = max(0, maximum - open)
        let ample = max(1, maximum / 4)
        return free >= ample ? idle : max(.seconds(1), idle * free / ample)
    }
}

/// The time limits for each part of a request.
package struct ConnectionDeadlines: Sendable {
    /// The time from a request's first byte to the end of its headers.
    ///
    /// The first request includes the TLS handshake.
    package var head: Duration

    /// The time from a request's first byte to the end of its body.
    package var request: Duration

    /// The time that the client may take to receive a response.
    package var response: Duration

    /// The time between two requests, while connections are not scarce.
    package var idle: Duration

    package init(
        head: Duration = .seconds(10),
        request: Duration = .seconds(30),
        response: Duration = .seconds(30),
        idle: Duration = .seconds(60)
    ) {
        self.head = head
        self.request = request
        self.response = response
        self.idle = idle
    }

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

extension HTTPClient {
    /// The timeouts, limits and certificate authorities of a client.
    package struct Configuration: Sendable {
        /// For DNS, TCP and TLS together.
        var connectDeadline: Duration = .seconds(5)
        /// For a request, counted from `send`. Its wait in the queue is included.
        var totalDeadline: Duration = .seconds(15)
        /// A PEM file of the certificates to trust instead of the system's.
        package var caFile: String?
        var maximumBodyBytes = 65536
        var maximumHeaderBytes = 65536
        /// Requests in flight. Further ones wait in first-in, first-out order.
        var maximumInFlight: Int
        /// The maximum number of connections to one host and port over HTTP/2. Over HTTP/1.1 each request has its own.
        var maximumConnections: Int
        package var userAgent = "refresh-worker"

        /// Sets four connections, or more if 50 requests for each are not enough.
        ///
        /// Most servers allow 100 streams or more per connection.
        package init(maximumInFlight: Int = 64) {
            self.maximumInFlight = maximumInFlight
            maximumConnections = min(maximumInFlight, max(4, (maximumInFlight + 49) / 50))
        }
    }
}

extension HTTPClient {
    /// How a client connects and what it bears.
    package struct Configuration: Sendable {
        /// How long finding the host, TCP and TLS together may take.
        package var connectDeadline: Duration = .seconds(5)
        /// How long a request may take from `send` on, its wait for a place included.
        package var totalDeadline: Duration = .seconds(15)
        /// The certificates to trust (PEM) instead of the system's.
        package var caFile: String?
        package var maximumBodyBytes = 65536
        package var maximumHeaderBytes = 65536
        /// Requests that libcurl has at one time; more wait in the order of their coming.
        package var maximumInFlight: Int
        /// Connections to one host and port.
        ///
        /// Fewer than `maximumInFlight` do only where the server speaks HTTP/2: over HTTP/1.1 libcurl would hold back the
        /// excess itself and count that wait as time to connect.
        package var maximumConnections: Int
        package var userAgent = "refresh-worker"
        /// Whether HTTP/2 is offered; it is used over TLS only.
        package var http2 = true

        /// As many connections as requests in flight, which is what HTTP/1.1 needs.
        package init(maximumInFlight: Int = 64) {
            self.maximumInFlight = maximumInFlight
            maximumConnections = maximumInFlight
        }

        /// Connections to one host and port as long as no answer came over HTTP/1.1.
        ///
        /// libcurl opens a connection for every request that finds no free stream, although one more would do for a hundred
        /// (https://curl.se/libcurl/c/CURLOPT_PIPEWAIT.html waits for the first connection only). Most servers give 100
        /// streams or more to a connection; here they need to give 50.
        var connectionsOverHTTP2: Int {
            http2 ? min(maximumConnections, max(4, (maximumInFlight + 49) / 50)) : maximumConnections
        }
    }
}

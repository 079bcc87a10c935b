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
        /// Connections to one host and port.
        package var maximumConnections = 64
        /// Requests that libcurl has at one time; more wait in the order of their coming.
        ///
        /// More than `maximumConnections` pays off only where the server speaks HTTP/2 (100 streams to a connection).
        /// Over HTTP/1.1 libcurl would hold back the excess itself and count that wait as time to connect.
        package var maximumInFlight = 64
        package var userAgent = "refresh-worker"
        /// Whether HTTP/2 is offered; it is used over TLS only.
        package var http2 = true

        package init() {}
    }
}

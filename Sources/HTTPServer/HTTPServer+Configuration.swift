extension HTTPServer {
    /// Where to listen, and the limits.
    package struct Configuration: Sendable {
        package var listen: ListenAddress

        package var threads: Int

        package var limits: Limits

        /// Further clients wait in the system's queue.
        package var maximumConnections: Int

        /// The memory that the bodies of all open requests may take together; further requests are answered with 503.
        package var requestMemoryBytes: Int

        /// Further clients of the same address, or of the same IPv6 /64, are turned away; nil for no such limit, which never
        /// holds for trusted proxies.
        package var maximumConnectionsPerAddress: Int?

        package var deadlines: Deadlines

        package var trustedProxies: TrustedProxies

        /// What a server presents over TLS 1.2 and 1.3, until ``HTTPServer/present(_:)`` replaces it; nil for plain HTTP.
        package var certificate: ServerCertificate?

        package init(
            listen: ListenAddress = .tcp(address: "127.0.0.1", port: 0),
            threads: Int = 1,
            limits: Limits = .init(),
            maximumConnections: Int = 4096,
            requestMemoryBytes: Int = 64 << 20,
            maximumConnectionsPerAddress: Int? = nil,
            deadlines: Deadlines = .init(),
            trustedProxies: TrustedProxies = .none,
            certificate: ServerCertificate? = nil
        ) {
            self.listen = listen
            self.threads = threads
            self.limits = limits
            self.maximumConnections = maximumConnections
            self.requestMemoryBytes = requestMemoryBytes
            self.maximumConnectionsPerAddress = maximumConnectionsPerAddress
            self.deadlines = deadlines
            self.trustedProxies = trustedProxies
            self.certificate = certificate
        }
    }

    /// How much a client may send.
    package struct Limits: Sendable {
        /// A longer body is answered with 413.
        package var bodyBytes: Int

        /// A client that has sent so many requests on a connection has to open another; nil for no limit.
        package var requestsPerConnection: Int?

        /// A longer target is answered with 414.
        let targetBytes = 8192

        /// A longer head, first line and all, is answered with 431.
        ///
        /// Each connection has twice as much memory, which libmicrohttpd overwrites after each request.
        package var headBytes: Int

        package init(bodyBytes: Int = 65_536, headBytes: Int = 32_768, requestsPerConnection: Int? = nil) {
            self.bodyBytes = bodyBytes
            self.headBytes = headBytes
            self.requestsPerConnection = requestsPerConnection
        }
    }
}

extension HTTPServer {
    /// The listening address and the limits of a server.
    package struct Configuration: Sendable {
        package var listen: ListenAddress

        package var threads: Int

        package var limits: Limits

        /// Further clients wait in the system's queue.
        package var maximumConnections: Int

        /// The memory that the bodies of all open requests may take together; further requests get 503.
        package var requestMemoryBytes: Int

        /// Further clients from the same address, or the same IPv6 /64, are rejected; `nil` for no limit.
        ///
        /// Trusted proxies are exempt.
        package var maximumConnectionsPerAddress: Int?

        package var deadlines: ConnectionDeadlines

        package var trustedProxies: TrustedProxies

        /// The certificate for TLS 1.2 and 1.3 until ``HTTPServer/present(_:)`` replaces it; `nil` for plain HTTP.
        package var certificate: ServerCertificate?

        package init(
            listen: ListenAddress = .tcp(address: "127.0.0.1", port: 0),
            threads: Int = 1,
            limits: Limits = .init(),
            maximumConnections: Int = 4096,
            requestMemoryBytes: Int = 64 << 20,
            maximumConnectionsPerAddress: Int? = nil,
            deadlines: ConnectionDeadlines = .init(),
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

    /// The limits on what a client may send.
    package struct Limits: Sendable {
        /// A longer body gets 413.
        package var bodyBytes: Int

        /// After this number of requests a client must open another connection; `nil` for no limit.
        package var requestsPerConnection: Int?

        /// A longer target gets 414.
        let targetBytes = 8192

        /// A longer head, including the first line, gets 431.
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

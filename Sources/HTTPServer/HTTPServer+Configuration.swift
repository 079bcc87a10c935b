extension HTTPServer {
    /// The listening address and the limits of a server.
    package struct Configuration: Sendable {
        var listen = ListenAddress.tcp(address: "127.0.0.1", port: 0)

        /// The socket of this address if it is open already.
        var socket: ListeningSocket?

        package var threads = 1

        package var limits = Limits()

        /// Further clients wait in the system's queue.
        package var maximumConnections = 4096

        /// The memory that the bodies of all open requests can take together. Further requests get 503.
        var requestMemoryBytes = 64 << 20

        /// Further clients from the same address, or the same IPv6 /64, are rejected. `nil` means no limit. Trusted
        /// proxies are exempt.
        package var maximumConnectionsPerAddress: Int?

        var deadlines = ConnectionDeadlines()

        package var trustedProxies = TrustedProxies.none

        /// The certificate for TLS 1.2 and 1.3 until ``HTTPServer/present(_:)`` replaces it, or `nil` for plain HTTP.
        package var certificate: ServerCertificate?
    }

    /// The limits on what a client can send.
    package struct Limits: Sendable {
        /// A longer body gets 413.
        package var bodyBytes = 65_536

        /// After this number of requests a client must open another connection. `nil` means no limit.
        var requestsPerConnection: Int?

        /// A longer target gets 414.
        let targetBytes = 8192

        /// A longer head, including the first line, gets 431. Each connection has twice as much memory, which
        /// libmicrohttpd overwrites after each request.
        package var headBytes = 32_768
    }
}

extension HTTPServer.Configuration {
    package init(listen: ListenAddress) {
        self.init()
        self.listen = listen
    }

    /// Opens the socket.
    ///
    /// Its clients wait until a server with this configuration starts. So if one of several addresses cannot be used,
    /// no client of the others gets a response from a process that ends at once.
    package mutating func openSocket() throws(HTTPServerError) { socket = try ListeningSocket(listen) }
}

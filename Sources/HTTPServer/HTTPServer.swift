package import Base
private import Synchronization

/// An HTTP/1.1 server with limits on its clients.
///
/// A few libmicrohttpd threads read and write all connections. A connection is suspended while the handler has its
/// request, so a slow handler blocks no thread. If the connection is lost during that time, the handler's task is
/// cancelled within a quarter of a second. A client that has only closed its sending side still gets its response.
///
/// The server runs until ``stop(within:)``. Dropping the last reference does not end it.
package final class HTTPServer: Sendable {
    package typealias Handler = @Sendable (ServerRequest) async -> ServerReply

    /// Responds on the listener's thread, without the cost of a task and a suspended connection.
    ///
    /// It must not block, because the thread's other connections would wait. `nil` leaves the request to the handler.
    package typealias ImmediateHandler = @Sendable (ServerRequest) -> ServerReply?

    /// Called for every finished request, on a connection's thread, so it must not block.
    package typealias Log = @Sendable (RequestSummary) -> Void

    /// Builds the response to a request that the server refuses, in the format of the API that serves the path.
    package typealias RefusalHandler = @Sendable (RequestRefusal, _ path: String) -> ServerResponse

    /// The port on which it listens, or 0 for a unix socket.
    package let port: UInt16

    let limits: Limits
    let trustedProxies: TrustedProxies
    let time: any TimeSource
    let random: any RandomSource
    let log: Log?
    let immediateHandler: ImmediateHandler?
    let refusalHandler: RefusalHandler
    let handler: Handler
    let exchanges = OpenExchanges()
    let clients: ServerConnections
    let memory: RequestMemory
    private let lifecycle = Mutex<(daemon: MicroHTTPDaemon?, stopping: Task<Void, Never>?)>((nil, nil))
    private let currentCertificate: Mutex<ServerCertificate?>

    /// Starts listening and serving.
    package init(
        configuration: Configuration,
        time: any TimeSource = SystemTime(),
        random: any RandomSource = SystemRandom(),
        log: Log? = nil,
        immediateHandler: ImmediateHandler? = nil,
        refusalHandler: @escaping RefusalHandler = RequestRefusal.plainResponse,
        handler: @escaping Handler
    ) throws(HTTPServerError) {
        let open = configuration.socket
        let listener = if let open { open } else { try ListeningSocket(configuration.listen) }
        port = listener.port
        limits = configuration.limits
        trustedProxies = configuration.trustedProxies
        self.time = time
        self.random = random
        self.log = log
        self.immediateHandler = immediateHandler
        self.refusalHandler = refusalHandler
        self.handler = handler
        clients = ServerConnections(configuration: configuration, time: time)
        memory = RequestMemory(limit: configuration.requestMemoryBytes)
        currentCertificate = Mutex(configuration.certificate)
        let daemon = try MicroHTTPDaemon(listener: listener, configuration: configuration, server: self)
        clients.startMonitoring()
        lifecycle.withLock { $0.daemon = daemon }
    }

    /// The certificate for new connections, or `nil` for plain HTTP.
    package var certificate: ServerCertificate? { currentCertificate.withLock(\.self) }

    /// Presents another certificate to new connections.
    ///
    /// Open connections keep theirs.
    ///
    /// - Precondition: the server was started with a certificate.
    package func present(_ certificate: ServerCertificate) {
        currentCertificate.withLock { currentCertificate in
            precondition(currentCertificate != nil, "the server speaks plain HTTP")
            currentCertificate = certificate
        }
    }

    /// Stops listening, gives open requests the grace period to finish, then closes the remaining connections.
    ///
    /// Repeated and concurrent calls are allowed. Each returns when the server has ended.
    package func stop(within grace: Duration = .seconds(5)) async {
        let stopping = lifecycle.withLock { state in
            if let stopping = state.stopping { return stopping }
            let daemon = state.daemon.take()
            let stopping = Task {
                guard let daemon else { return }
                daemon.stopListening()
                await exchanges.drained(within: grace)
                exchanges.abandonAll()
                await daemon.end()
                clients.stopMonitoring()
            }
            state.stopping = stopping
            return stopping
        }
        await stopping.value
    }
}

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

        /// The memory that the bodies of all open requests can take together.
        ///
        /// Further requests get 503.
        var requestMemoryBytes = 64 << 20

        /// Further clients from the same address, or the same IPv6 /64, are rejected.
        ///
        /// `nil` means no limit.
        ///
        /// Trusted proxies are exempt.
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

        /// After this number of requests a client must open another connection.
        ///
        /// `nil` means no limit.
        var requestsPerConnection: Int?

        /// A longer target gets 414.
        let targetBytes = 8192

        /// A longer head, including the first line, gets 431.
        ///
        /// Each connection has twice as much memory, which libmicrohttpd overwrites after each request.
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

/// The reason why a server could not start.
package struct HTTPServerError: Error, CustomStringConvertible {
    package enum Code: Sendable {
        /// The address is not numeric IPv4 or IPv6, or the path is not valid for a unix socket.
        case badAddress
        /// The system refused the socket: the port is taken, or the address does not belong to this machine.
        case cannotListen
        /// An inherited descriptor is not a listening stream socket, or cannot be identified.
        case badInheritedSocket
        /// The system refused to raise the limit of open files.
        case openFiles
        /// libmicrohttpd could not start its threads, or GnuTLS failed.
        case cannotStart
        /// The certificate file does not hold a PEM certificate.
        case badCertificate
        /// The key file does not hold an unencrypted PEM key.
        case badKey
        /// The key does not belong to the first certificate of the file.
        case foreignKey
    }

    package let code: Code
    package let message: String

    /// The system's error number, or 0.
    package var systemError: Int32 = 0

    package var description: String {
        systemError == 0 ? message : "\(message): \(SystemCallError(call: message, code: systemError).reason)"
    }
}

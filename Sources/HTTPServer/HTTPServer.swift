package import Base
private import Synchronization

/// An HTTP/1.1 server with limits on its clients.
///
///     let server = try HTTPServer(configuration: .init(listen: address)) { request in
///         .respond(.json(await answer(to: request)))
///     }
///     …
///     await server.stop(within: .seconds(10))
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
    package typealias RefusalHandler = @Sendable (RequestError, _ path: String) -> ServerResponse

    private struct Lifecycle {
        var daemon: MicroHTTPDaemon?
        var stopping: Task<Void, Never>?
    }

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
    private let lifecycle = Mutex(Lifecycle())
    private let currentCertificate: Mutex<ServerCertificate?>

    /// Starts listening and serving.
    package init(
        configuration: Configuration,
        time: any TimeSource = SystemTime(),
        random: any RandomSource = SystemRandom(),
        log: Log? = nil,
        immediateHandler: ImmediateHandler? = nil,
        refusalHandler: @escaping RefusalHandler = RequestError.plainResponse,
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

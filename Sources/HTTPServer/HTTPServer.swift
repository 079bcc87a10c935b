package import Clocks
private import Synchronization

/// An HTTP/1.1 server: requests in, answers out, limits.
///
/// A few libmicrohttpd threads read and write all connections. A connection whose request is with the handler is suspended,
/// so a slow handler blocks no thread. A connection that is lost meanwhile cancels the handler's task, within a quarter of a
/// second. A client that has closed its sending side meanwhile gets its answer.
///
/// The server runs until ``stop(within:)``; dropping the last reference does not end it.
package final class HTTPServer: Sendable {
    package typealias Handler = @Sendable (ServerRequest) async -> ServerReply

    /// Answers at once, on the connection's own thread, without the cost of a task and a suspended connection.
    ///
    /// It must not block, for it holds up the thread's other connections; nil leaves the request to the handler.
    package typealias Quick = @Sendable (ServerRequest) -> ServerReply?

    /// Hears of every request that is over, on a connection's thread, so it must not block.
    package typealias Log = @Sendable (RequestSummary) -> Void

    /// Puts a refusal of the server's own into the words of whoever serves the path.
    package typealias Refuser = @Sendable (RequestRefusal, _ path: String) -> ServerResponse

    private struct Life {
        var daemon: Daemon?
        var ending: Task<Void, Never>?
    }

    /// The port it listens on; 0 where that is a unix socket.
    package let port: UInt16

    let limits: Limits
    let trustedProxies: TrustedProxies
    let time: any TimeSource
    let random: any RandomSource
    let log: Log?
    let quick: Quick?
    let answerToRefused: Refuser
    let handler: Handler
    let exchanges = OpenExchanges()
    let clients: Clients
    let memory: RequestMemory
    private let life = Mutex(Life())
    private let presented: Mutex<ServerCertificate?>

    /// Starts to listen and to serve.
    package init(
        configuration: Configuration,
        time: any TimeSource = SystemTime(),
        random: any RandomSource = SystemRandom(),
        log: Log? = nil,
        quick: Quick? = nil,
        answerToRefused: @escaping Refuser = RequestRefusal.plainAnswer,
        handler: @escaping Handler
    ) throws(HTTPServerError) {
        let listener = try ListeningSocket(configuration.listen)
        port = listener.port
        limits = configuration.limits
        trustedProxies = configuration.trustedProxies
        self.time = time
        self.random = random
        self.log = log
        self.quick = quick
        self.answerToRefused = answerToRefused
        self.handler = handler
        clients = Clients(configuration: configuration, time: time)
        memory = RequestMemory(limit: configuration.requestMemoryBytes)
        presented = Mutex(configuration.certificate)
        let daemon = try Daemon(listener: listener, configuration: configuration, server: self)
        clients.startWatching()
        life.withLock { $0.daemon = daemon }
    }

    /// The number of requests that have begun and whose answer is not wholly sent.
    package var openRequests: Int { exchanges.count }

    /// The bytes that the bodies of open requests take.
    package var requestMemory: Int { memory.count }

    /// The number of clients that are connected.
    package var openConnections: Int { clients.count }

    /// The certificate for new connections; nil for plain HTTP.
    var certificate: ServerCertificate? { presented.withLock(\.self) }

    /// Presents another certificate to new connections; those that are open keep theirs.
    ///
    /// - Precondition: the server was started with a certificate.
    package func present(_ certificate: ServerCertificate) {
        presented.withLock { presented in
            precondition(presented != nil, "the server speaks plain HTTP")
            presented = certificate
        }
    }

    /// Stops listening, lets begun requests have their answers for that long, then closes what is left.
    ///
    /// It may be called twice, at once or one after the other; every call returns when the server has ended.
    package func stop(within grace: Duration = .seconds(5)) async {
        let ending = life.withLock { life in
            if let ending = life.ending { return ending }
            let daemon = life.daemon.take()
            let ending = Task {
                guard let daemon else { return }
                daemon.stopListening()
                await exchanges.drained(within: grace)
                exchanges.abandonAll()
                await daemon.end()
                clients.stopWatching()
            }
            life.ending = ending
            return ending
        }
        await ending.value
    }
}

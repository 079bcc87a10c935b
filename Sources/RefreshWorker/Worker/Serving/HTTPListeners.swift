import Base
import HTTPServer
import Routes
import Scheduler
import Storage

/// The daemon's listeners: the app's routes on one, tokens and probes on the other.
struct HTTPListeners: Sendable {
    /// The files that a reload reads again.
    typealias Files = (services: ServiceList?, certificate: ServerCertificate?)

    /// The limit of concurrent requests to Google for callers of the public listener.
    static let maximumLookups = 128
    /// The time since the last iteration of a loop after which the process counts as unhealthy.
    static let maximumIteration: Duration = .seconds(60)

    let phase: Shared<ServingPhase>
    private var services: ServiceDirectory?
    private var reader: SynchronousGrantReader?
    private(set) var publicServer: HTTPServer?
    /// The exchange of the app's codes; `nil` without a public listener.
    private let exchanges: CodeExchanges?
    /// The servers of the internal listener, one for each of its addresses.
    private var internalServers: [HTTPServer] = []
    private(set) var certificate: CertificateMonitor?
    /// The state of the process, as the internal listener shows it.
    private(set) var monitoring: MonitoringHandler?

    /// Reads the dependencies and starts listening.
    ///
    /// Until ``phase`` changes, `/readyz` answers that it is not ready.
    init(_ worker: WorkerParts) throws {
        let context = worker.context
        let configuration = context.configuration
        let inherited = try HTTPServer.inheritedSockets(
            environment: context.inputs.environment,
            processID: ProcessSetup.id
        )
        let phase = Shared(ServingPhase.starting)
        self.phase = phase
        // Everything that can be refused comes before the first server starts, because that would answer for a moment.
        let exchanges = configuration.publicListener.map { _ in Self.codeExchanges(worker) }
        self.exchanges = exchanges
        let tokens = try context.openAppTokens(store: worker.store)
        let publicRouter = try configuration.publicListener.map { _ in
            // A client of its own, so that refreshes never wait behind the look-ups of the tokens that public clients
            // send.
            let lookups = try context.openHTTP(maximumInFlight: Self.maximumLookups)
            return try Self.publicRouter(worker, lookups, tokens, exchanges, probes: Self.probes(worker, phase: phase))
        }
        let publicAddress = try configuration.publicListener.map { location in
            let address = try context.listenAddress(location, inherited: inherited)
            guard address.reach != .unixSocket else {
                throw CommandError(
                    .configuration,
                    """
                    --listen: the socket from systemd is a unix socket, whose clients do not have an address for rate \
                    limits: use ListenStream=127.0.0.1:PORT in the socket's unit, and let the proxy connect to that
                    """
                )
            }
            return address
        }
        let publicConfiguration = try publicAddress.map { try Self.publicServer(at: $0, configuration) }
        if !configuration.internalListeners.isEmpty {
            let directory = try configuration.servicesFile.map { _ in ServiceDirectory(try context.readServices()) }
            let tls = try context.readInternalCertificate()
            let servers = try configuration.internalListeners.map { location in
                let address = try context.listenAddress(location, inherited: inherited)
                if let problem = configuration.internalTLSProblem(at: address) {
                    throw CommandError(.configuration, "--listen-internal: \(problem)")
                }
                return try Self.internalServer(
                    at: address,
                    certificate: address.reach == .unixSocket ? nil : tls,
                    shareOf: configuration.internalListeners.count
                )
            }
            // One connection per thread, so that each finds one free. A request to a database server would block the
            // thread for too long.
            let threads = servers.reduce(0) { $0 + $1.threads }
            let reader = try configuration.database.file.map { path throws(StoreError) in
                try SynchronousGrantReader(path: path, connections: threads)
            }
            certificate = tls.flatMap { certificate in
                configuration.internalCertificateFile.map { path in
                    CertificateMonitor(
                        certificate: Shared(certificate),
                        path: path,
                        log: worker.log,
                        time: context.time
                    )
                }
            }
            let monitoring = Self.probes(
                worker,
                phase: phase,
                certificateExpiry: { [certificate] in certificate?.expiresAt }
            )
            self.monitoring = monitoring
            let provider = TokenProvider(engine: worker.engine, immediateRead: { try reader?.grant(ofUser: $0) })
            for server in servers {
                let router = InternalRoutes(
                    services: directory,
                    provider: provider,
                    appTokens: tokens,
                    vault: worker.vault,
                    random: context.random,
                    clientIDs: { context.configuration.clientIDs },
                    monitoring: monitoring,
                    exposure: Self.exposure(configuration, hasTLS: server.certificate != nil)
                ).router
                internalServers.append(try Self.open(server, router, refusalHandler: InternalRoutes.response, worker))
            }
            services = directory
            self.reader = reader
        }
        if let publicConfiguration, let publicRouter {
            publicServer = try Self.open(
                publicConfiguration,
                publicRouter,
                refusalHandler: PublicRoutes.response,
                worker
            )
        }
    }

    /// Reads the services and the certificate again, and applies neither, or returns `nil` without an internal
    /// listener.
    func readFiles(_ context: CommandContext) throws -> Files? {
        guard !internalServers.isEmpty else { return nil }
        return (
            services: services == nil ? nil : try context.readServices(),
            certificate: certificate == nil ? nil : try context.readInternalCertificate()
        )
    }

    /// Continues with files that were read again.
    func apply(_ files: Files) {
        if let latest = files.services { services?.replace(latest) }
        if let latest = files.certificate {
            for server in internalServers where server.certificate != nil { server.present(latest) }
            certificate?.replace(with: latest)
        }
    }

    /// Announces that requests should go elsewhere, and lets the app's requests in progress complete.
    ///
    /// Returns the number of grants whose tokens could not be stored.
    func drain(within grace: Duration) async -> UnstoredResults {
        phase.value = .draining
        // The rest of the time is for the responses to requests whose exchange is cancelled.
        async let unstored = exchanges?.stop(within: grace * 3 / 4)
        await publicServer?.stop(within: grace)
        return await unstored ?? .none
    }

    /// Ends the internal listener, which is the last because it reports the draining until then.
    func stop(within grace: Duration) async {
        await withDiscardingTaskGroup { group in
            for server in internalServers { group.addTask { await server.stop(within: grace) } }
        }
        reader?.close()
    }
}

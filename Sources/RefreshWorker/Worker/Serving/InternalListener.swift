import Base
import HTTPServer
import Routes
import Scheduler
import Storage

/// The listener that vends tokens and shows metrics, health and status, at one address or several.
struct InternalListener: Sendable {
    /// The files that a reload reads again.
    struct Files {
        var services: ServiceList?
        var certificate: ServerCertificate?
    }

    /// One for each address.
    private let servers: [HTTPServer]
    private let services: ServiceDirectory?
    private let reader: SynchronousGrantReader?
    let certificate: CertificateMonitor?

    /// Reads the services and the certificate again, and applies neither.
    func readFiles(_ context: CommandContext) throws -> Files {
        Files(
            services: services == nil ? nil : try context.readServices(),
            certificate: certificate == nil ? nil : try context.readInternalCertificate()
        )
    }

    /// Continues with files that were read again.
    func apply(_ files: Files) {
        if let latest = files.services { services?.replace(latest) }
        if let latest = files.certificate {
            for server in servers where server.certificate != nil { server.present(latest) }
            certificate?.replace(with: latest)
        }
    }

    func stop(within grace: Duration) async {
        await withDiscardingTaskGroup { group in
            for server in servers { group.addTask { await server.stop(within: grace) } }
        }
        reader?.close()
    }
}

extension InternalListener {
    /// The listener with its files read and its sockets open, before it answers.
    struct Prepared {
        private let configurations: [HTTPServer.Configuration]
        private let services: ServiceDirectory?
        private let reader: SynchronousGrantReader?
        private let certificate: CertificateMonitor?

        init(at locations: [ListenerLocation], of worker: Worker, inherited: [String: Int32]) throws {
            let context = worker.context
            services =
                if context.configuration.servicesFile != nil {
                    ServiceDirectory(try context.readServices())
                } else {
                    nil
                }
            let tls = try context.readInternalCertificate()
            configurations = try locations.map { location in
                try Self.configuration(
                    at: location,
                    of: locations.count,
                    tls: tls,
                    context: context,
                    inherited: inherited
                )
            }
            reader = try Self.reader(for: configurations, context: context)
            certificate =
                if let tls, let path = context.configuration.internalCertificateFile {
                    CertificateMonitor(certificate: Shared(tls), path: path, log: worker.log, time: context.time)
                } else {
                    nil
                }
        }

        private static func configuration(
            at location: ListenerLocation,
            of count: Int,
            tls: ServerCertificate?,
            context: CommandContext,
            inherited: [String: Int32]
        ) throws -> HTTPServer.Configuration {
            let address = try location.address(
                mode: context.configuration.socketMode,
                inherited: inherited
            )
            if let problem = context.configuration.internalTLSProblem(at: address) {
                throw CommandError(.configuration, "--listen-internal: \(problem)")
            }
            return try HTTPListeners.internalServerConfiguration(
                at: address,
                certificate: address.reach == .unixSocket ? nil : tls,
                shareOf: count
            )
        }

        /// Opens connections for the listener's threads, one for each, so that each finds one free.
        ///
        /// A request to a database server would block the thread for too long.
        private static func reader(
            for servers: [HTTPServer.Configuration],
            context: CommandContext
        ) throws -> SynchronousGrantReader? {
            guard let path = context.configuration.database.file else { return nil }
            return try SynchronousGrantReader(path: path, connections: servers.reduce(0) { $0 + $1.threads })
        }

        func start(
            _ worker: Worker,
            tokens: AppTokens,
            phase: Shared<ServingPhase>
        ) throws -> InternalListener {
            let monitoring = HTTPListeners.monitoring(
                worker,
                phase: phase,
                certificateExpiry: { [certificate] in certificate?.expiresAt }
            )
            let provider = TokenProvider(
                engine: worker.engine,
                immediateRead: { [reader] user, connection in
                    try reader?.grant(ofUser: user, connection: connection)
                }
            )
            let context = worker.context
            let servers = try configurations.map { configuration in
                let routes = InternalRoutes(
                    services: services,
                    provider: provider,
                    appTokens: tokens,
                    vault: worker.vault,
                    random: context.random,
                    clientIDs: { context.configuration.clientIDs },
                    monitoring: monitoring,
                    exposure: HTTPListeners.exposure(
                        context.configuration,
                        hasTLS: configuration.certificate != nil
                    )
                )
                return try HTTPListeners.startServer(
                    configuration,
                    router: routes.router,
                    refusalHandler: InternalRoutes.response,
                    of: worker
                )
            }
            return InternalListener(
                servers: servers,
                services: services,
                reader: reader,
                certificate: certificate
            )
        }
    }
}

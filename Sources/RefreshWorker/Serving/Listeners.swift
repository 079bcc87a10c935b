import AccountAPI
import HTTPServer
import Observability
import RefreshEngine
import SQLiteStore
import Store

/// The daemon's listeners and what they serve: the app's routes on one, tokens and probes on the other.
struct Listeners: Sendable {
    /// What all routes are made of.
    struct Parts: Sendable {
        let workshop: Workshop
        let store: any AccountStore
        let database: DatabaseWatch
        let engine: RefreshEngine
        let vault: TokenVault
        let metrics: MetricsLog
        let counters: IntervalCounters
        let log: EngineLog
        let pulse: LoopPulse
    }

    private static let mostConnectionsOfAddress = 256
    /// Requests to Google at one time on behalf of the public listener's callers.
    static let mostLookups = 128
    /// How long a loop may take to come round before the process counts as ill.
    static let longestTurn: Duration = .seconds(60)

    let phase: ServingPhase
    private let services: ServiceDirectory?
    private let reader: PromptGrantReader?
    private let publicServer: HTTPServer?
    private let internalServer: HTTPServer?
    private let certificate: CertificateWatch?

    /// Reads what they need and begins to listen; until ``ServingPhase`` says so, `/readyz` answers that it is not ready.
    init(_ parts: Parts) throws {
        let workshop = parts.workshop
        let configuration = workshop.configuration
        let inherited = try SocketActivation.descriptors(
            environment: workshop.inputs.environment,
            processID: ProcessIdentity.number
        )
        let phase = ServingPhase()
        self.phase = phase
        // What may be refused comes before the first listener opens, which would answer for a moment.
        let publicRouter = try configuration.publicListener.map { _ in try Self.publicRouter(parts, phase: phase) }
        if let place = configuration.internalListener {
            let directory = ServiceDirectory(try workshop.readServices())
            let address = try workshop.listenAddress(place, inherited: inherited)
            if let problem = configuration.internalTLSProblem(at: address) {
                throw CommandFailure(.configuration, "--listen-internal: \(problem)")
            }
            var server = HTTPServer.Configuration(listen: address)
            server.certificate = try workshop.readInternalCertificate()
            // One fleet of functions may share an address; those on this machine always do.
            if server.certificate != nil { server.maximumConnectionsPerAddress = Self.mostConnectionsOfAddress }
            // A client stays with the thread that took it in, and one thread may take many: more threads than processors
            // leave none of these idle.
            server.threads = 4
            server.maximumConnections = try ConnectionRoom(openFiles: OpenFileLimit.raise()).ofServices
            // The user's own services send no cookies, and a greater head slows every answer down.
            server.limits.headBytes = 8192
            // As many as there are threads that ask, so that each finds one free. A server is too far to be asked by them.
            let reader = try configuration.database.file.map { path throws(StoreError) in
                try PromptGrantReader(path: path, connections: server.threads)
            }
            certificate = server.certificate.flatMap { certificate in
                configuration.internalCertificateFile.map { path in
                    CertificateWatch(certificate, path: path, log: parts.log, time: workshop.time)
                }
            }
            let router = Self.internalRouter(
                parts,
                services: directory,
                reader: reader,
                certificate: certificate,
                phase: phase
            )
            internalServer = try Self.open(server, router, answerToRefused: InternalRoutes.answer, parts)
            services = directory
            self.reader = reader
        } else {
            certificate = nil
            internalServer = nil
            services = nil
            reader = nil
        }
        if let place = configuration.publicListener, let publicRouter {
            var server = HTTPServer.Configuration(listen: try workshop.listenAddress(place, inherited: inherited))
            server.maximumConnections = try ConnectionRoom(openFiles: OpenFileLimit.raise()).ofStrangers
            server.maximumConnectionsPerAddress = Self.mostConnectionsOfAddress
            // Twenty thousand strangers hold at most 640 MB of heads: each connection has memory for two of the longest.
            server.limits.headBytes = 16_384
            server.trustedProxies = try TrustedProxies(configuration.trustedProxies)
            publicServer = try Self.open(server, publicRouter, answerToRefused: PublicRoutes.answer, parts)
        } else {
            publicServer = nil
        }
    }

    /// Reads the services and the certificate again; both are replaced, or neither.
    func reload(_ workshop: Workshop) throws {
        guard let services else { return }
        let roster = try workshop.readServices()
        if let certificate, let fresh = try workshop.readInternalCertificate() {
            internalServer?.present(fresh)
            certificate.replace(with: fresh)
        }
        services.replace(roster)
    }

    /// Raises an alarm every day while the internal listener's certificate needs to be renewed.
    func watchCertificate() async {
        guard let certificate else { return }
        await Metronome.beat(every: .seconds(86_400)) { certificate.check() }
    }

    /// Says that requests should go elsewhere, and lets those of the app that have begun have their answers.
    func drain(within grace: Duration) async {
        phase.enter(.draining)
        await publicServer?.stop(within: grace)
    }

    /// Ends the internal listener, the last to go: it tells of the draining until then.
    func stop(within grace: Duration) async {
        await internalServer?.stop(within: grace)
        reader?.close()
    }
}

import Base
import HTTPServer
import Scheduler
import Telemetry

/// The numbers of connections that the listeners can hold.
struct ConnectionLimits: Equatable {
    let ofPublic: Int
    let ofInternal: Int
}

/// The settings of the servers.
extension HTTPListeners {
    static let maximumConnectionsOfAddress = 256
    /// The descriptors that the worker itself needs at most: the database, logs, the threads' own, and 64 connections
    /// to Google.
    private static let descriptorsOfWorker = 128
    /// Ten thousand idle public clients must not lock out other clients.
    static let maximumPublic = 20_000
    private static let maximumInternal = 4096
    private static let minimumConnections = 16

    /// Returns the number of connections each listener can hold with a limit of descriptors, so that public clients
    /// leave some for the worker itself.
    static func connectionLimits(openFiles: Int) -> ConnectionLimits {
        let spare = openFiles - descriptorsOfWorker
        let ofInternal = (spare / 4).clamped(to: minimumConnections...maximumInternal)
        let ofPublic = (spare - ofInternal).clamped(to: minimumConnections...maximumPublic)
        return ConnectionLimits(ofPublic: ofPublic, ofInternal: ofInternal)
    }

    /// Returns the settings of the public listener, with its socket open.
    static func publicServerConfiguration(
        at address: ListenAddress,
        configuration: Configuration
    ) throws -> HTTPServer.Configuration {
        var server = HTTPServer.Configuration(listen: address)
        server.maximumConnections = connectionLimits(openFiles: try HTTPServer.raiseOpenFileLimit()).ofPublic
        server.maximumConnectionsPerAddress = maximumConnectionsOfAddress
        // Twenty thousand public clients use at most 640 MB for heads: each connection has memory for two of the
        // longest.
        server.limits.headBytes = 16_384
        server.trustedProxies = try TrustedProxies(configuration.trustedProxies)
        try openSocket(of: &server)
        return server
    }

    private static func openSocket(of server: inout HTTPServer.Configuration) throws {
        do throws(HTTPServerError) {
            try server.openSocket()
        } catch {
            throw CommandError(cannotListen: error)
        }
    }

    /// Returns the settings of the internal listener at one of its addresses, which share the connections, with its
    /// socket open.
    static func internalServerConfiguration(
        at address: ListenAddress,
        certificate: ServerCertificate?,
        shareOf addresses: Int
    ) throws -> HTTPServer.Configuration {
        var server = HTTPServer.Configuration(listen: address)
        server.certificate = certificate
        // Many functions of one service can share an address. Those on this machine always do.
        if certificate != nil { server.maximumConnectionsPerAddress = maximumConnectionsOfAddress }
        // A client stays with the thread that accepted it, and one thread might get many: with more threads than
        // processors, no processor stays idle.
        server.threads = 4
        let limit = connectionLimits(openFiles: try HTTPServer.raiseOpenFileLimit()).ofInternal
        server.maximumConnections = max(1, limit / addresses)
        // The user's own services do not send cookies, and a larger head slows down every answer.
        server.limits.headBytes = 8192
        try openSocket(of: &server)
        return server
    }

    /// Starts a server, which logs and counts its requests.
    static func startServer(
        _ configuration: HTTPServer.Configuration,
        router: Router,
        refusalHandler: @escaping HTTPServer.RefusalHandler,
        of worker: Worker
    ) throws -> HTTPServer {
        let diagnostics = worker.context.diagnostics
        let counters = worker.counters
        do throws(HTTPServerError) {
            return try HTTPServer(
                configuration: configuration,
                time: worker.context.time,
                random: worker.context.random,
                log: { summary in
                    counters.recordRequest(route: summary.route, status: summary.status)
                    diagnostics.debug(
                        "request",
                        [
                            "id": summary.id, "method": summary.method, "route": summary.route,
                            "status": "\(summary.status)", "milliseconds": "\(summary.duration.wholeMilliseconds)",
                            "bytes": "\(summary.bytes)", "address": summary.address, "trace_id": summary.traceID,
                        ]
                    )
                },
                immediateHandler: { request in
                    TraceContext.$current.withValue(request.traceContext) { router.immediateReply(request) }
                },
                refusalHandler: refusalHandler,
                handler: { request in
                    await TraceContext.$current.withValue(request.traceContext) { await router.answer(request) }
                }
            )
        } catch {
            throw CommandError(cannotListen: error)
        }
    }
}

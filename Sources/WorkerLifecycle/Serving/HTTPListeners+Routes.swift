import AccountAPI
import Clocks
import GoogleOAuth
import HTTPClient
import HTTPServer
import Observability
import RefreshEngine
import SQLiteStore
import WorkerConfiguration

/// The routes of each listener, made from the daemon's parts.
extension HTTPListeners {
    /// Returns the app's routes, Google's security events, and the two probes of a load balancer.
    static func publicRouter(_ parts: Parts, phase: ServingPhase) throws -> Router {
        let context = parts.context
        // A client of its own, so that refreshes never wait behind the look-ups of tokens that public clients send.
        let lookups = try context.openHTTP(maximumInFlight: mostLookups)
        let reader = securityEventReader(context, lookups)
        let events = SecurityEventReceiver(
            read: { body throws(SecurityEventRefusal) in try await reader.read(body) },
            store: parts.store,
            metrics: parts.metrics,
            counters: parts.counters.running,
            log: parts.log,
            time: context.time,
            onChange: { await parts.engine.storeChanged() }
        )
        let services = try accountServices(parts, lookups)
        return PublicRoutes(services, securityEvents: events, probes: probes(parts, phase: phase)).router
    }

    static func securityEventReader(_ context: CommandContext, _ lookups: HTTPClient) -> SecurityEventReader {
        SecurityEventReader(
            keys: SecurityEventKeys(
                http: lookups,
                configurationEndpoint: context.configuration.securityEventsEndpoint,
                time: context.time
            ),
            clientIDs: { context.configuration.clientIDs },
            time: context.time
        )
    }

    static func accountServices(_ parts: Parts, _ lookups: HTTPClient) throws -> RouteDependencies {
        let context = parts.context
        let configuration = context.configuration
        return RouteDependencies(
            store: parts.store,
            engine: parts.engine,
            google: GoogleOAuthAPI(http: lookups, endpoints: configuration.endpoints),
            vault: parts.vault,
            signer: try context.openSigner(),
            clientIDs: { context.configuration.clientIDs },
            budgets: RequestBudgets(
                failedSignInsPerMinute: configuration.googleCallsPerMinute,
                time: context.time
            ),
            emailLinking: configuration.emailLinking,
            sessionRules: SessionRules(
                grace: configuration.sessionGrace,
                acceptFormerTokensUntil: configuration.acceptFormerRefreshTokensUntil
            ),
            time: context.time,
            random: context.random,
            log: parts.log,
            diagnostics: context.diagnostics
        )
    }

    static func internalRouter(
        _ parts: Parts,
        services: ServiceDirectory,
        reader: SynchronousGrantReader?,
        certificate: CertificateMonitor?,
        phase: ServingPhase
    ) -> Router {
        let context = parts.context
        let desk = TokenVendingHandler(
            provider: TokenProvider(
                store: parts.store,
                promptRead: { try reader?.grant(ofUser: $0) },
                vault: parts.vault,
                engine: parts.engine,
                time: context.time
            ),
            services: services,
            metrics: parts.metrics,
            counters: parts.counters.running,
            diagnostics: context.diagnostics,
            time: context.time
        )
        let probes = probes(parts, phase: phase, certificateExpiry: { certificate?.expiresAt })
        return InternalRoutes(desk: desk, probes: probes, exposure: exposure(context.configuration)).router
    }

    /// Returns the machines that can reach the internal listener, which follows from its certificate.
    static func exposure(_ configuration: Configuration) -> InternalRoutes.Exposure {
        configuration.internalCertificateFile == nil
            ? .thisMachine : .network(servesMetrics: configuration.servesInternalMetrics)
    }

    static func probes(
        _ parts: Parts,
        phase: ServingPhase,
        certificateExpiry: @escaping @Sendable () -> Timestamp? = { nil }
    ) -> MonitoringHandler {
        let context = parts.context
        let pulse = parts.pulse
        return MonitoringHandler(
            store: parts.store,
            database: parts.database,
            engine: parts.engine,
            counters: parts.counters.running,
            metrics: parts.metrics,
            phase: phase,
            time: context.time,
            stalledLoops: {
                pulse.stalled(since: context.time.sinceBoot + (.zero - longestTurn)).map(\.rawValue)
            },
            certificateExpiry: certificateExpiry,
            statusReport: { try await parts.statusReport(parts.store) }
        )
    }

    static func open(
        _ configuration: HTTPServer.Configuration,
        _ router: Router,
        answerToRefused: @escaping HTTPServer.RefusalHandler,
        _ parts: Parts
    ) throws -> HTTPServer {
        let diagnostics = parts.context.diagnostics
        let counters = parts.counters.running
        do throws(HTTPServerError) {
            return try HTTPServer(
                configuration: configuration,
                time: parts.context.time,
                random: parts.context.random,
                log: { summary in
                    counters.recordRequest(route: summary.route, status: summary.status)
                    diagnostics.debug(
                        "request",
                        [
                            "id": summary.id, "method": summary.method, "route": summary.route,
                            "status": "\(summary.status)", "milliseconds": "\(summary.duration.wholeMilliseconds)",
                            "bytes": "\(summary.bytes)", "address": summary.address,
                        ]
                    )
                },
                quick: { router.quickAnswer($0) },
                answerToRefused: answerToRefused,
                handler: { await router.answer($0) }
            )
        } catch {
            throw CommandFailure(.cannotCreate, "\(error): see that nothing else listens there, or name another place")
        }
    }
}

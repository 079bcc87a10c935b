import Base
import GoogleOAuth
import HTTPClient
import HTTPServer
import Routes
import Scheduler
import Telemetry

/// The routes of each listener, made from the parts of the running worker.
extension HTTPListeners {
    /// Returns the app's routes, Google's security events, and the two probes of a load balancer.
    static func publicRouter(
        _ worker: Worker,
        lookups: HTTPClient,
        tokens: AppTokens,
        exchanges: CodeExchanges,
        monitoring: MonitoringHandler
    ) -> Router {
        let events = securityEventReader(worker.context, lookups: lookups)
        return PublicRoutes(
            appDependencies(worker, lookups: lookups, tokens: tokens, exchanges: exchanges),
            verify: { body throws(SecurityEventError) in try await events.read(body) },
            monitoring: monitoring
        ).router
    }

    static func securityEventReader(_ context: CommandContext, lookups: HTTPClient) -> SecurityEventReader {
        SecurityEventReader(
            keys: KeySetCache(
                .configuration(context.configuration.securityEventsEndpoint),
                http: lookups,
                time: context.time
            ),
            clientIDs: { context.configuration.allClientIDs },
            time: context.time
        )
    }

    /// Returns the exchange of the app's codes.
    ///
    /// It shares the refreshes' HTTP client and its open connections. A code can be sent on it, because it comes only
    /// with a token that Google has accepted.
    static func codeExchanges(_ worker: Worker) -> CodeExchanges {
        let context = worker.context
        return CodeExchanges(
            client: { [engine = worker.engine] in
                guard let id = context.configuration.serverClientID, let secret = engine.clientSecret(of: id) else {
                    return nil
                }
                return OAuthClientCredentials(id: id, secret: secret)
            },
            endpoint: GoogleOAuthAPI(http: worker.http, endpoints: context.configuration.endpoints),
            bindsTokens: context.configuration.bindsTokens,
            save: { [spill = worker.spill] in try await spill.save($0) },
            time: context.time
        )
    }

    static func appDependencies(
        _ worker: Worker,
        lookups: HTTPClient,
        tokens: AppTokens,
        exchanges: CodeExchanges? = nil
    ) -> AppRoutes.Dependencies {
        let context = worker.context
        let configuration = context.configuration
        return AppRoutes.Dependencies(
            store: worker.store,
            engine: worker.engine,
            google: GoogleOAuthAPI(http: lookups, endpoints: configuration.endpoints),
            vault: worker.vault,
            tokens: tokens,
            googleKeys: KeySetCache(.keys(configuration.googleKeysEndpoint), http: lookups, time: context.time),
            clientIDs: { context.configuration.clientIDs },
            exchanges: exchanges,
            connectionsPerUser: configuration.connectionsPerUser,
            budgets: RequestBudgets(
                failuresPerMinute: configuration.googleCallsPerMinute,
                time: context.time
            ),
            emailLinking: configuration.emailLinking,
            sessionGrace: configuration.sessionGrace,
            acceptFormerTokensUntil: configuration.acceptFormerRefreshTokensUntil,
            time: context.time,
            random: context.random,
            log: worker.log
        )
    }

    /// Returns the machines that can reach an address of the internal listener, which follows from its certificate.
    static func exposure(_ configuration: Configuration, hasTLS: Bool) -> InternalRoutes.Exposure {
        hasTLS ? .network(servesMetrics: configuration.servesInternalMetrics) : .thisMachine
    }

    static func monitoring(
        _ worker: Worker,
        phase: Shared<ServingPhase>,
        certificateExpiry: @escaping @Sendable () -> Timestamp? = { nil }
    ) -> MonitoringHandler {
        let context = worker.context
        let loops = worker.loopHeartbeats
        return MonitoringHandler(
            name: context.workerName,
            version: Version.withCommit,
            status: worker.status,
            engine: worker.engine,
            counters: worker.counters,
            log: worker.log,
            metrics: worker.metricsSource,
            phase: phase,
            time: context.time,
            stalledLoops: {
                loops.stalled(since: context.time.sinceBoot - maximumIteration).map(\.rawValue)
            },
            certificateExpiry: certificateExpiry
        )
    }
}

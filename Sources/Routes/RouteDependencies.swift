package import Base
package import GoogleOAuth
package import HTTPServer
package import Scheduler
package import Storage
internal import Telemetry

/// The dependencies of the public routes.
package struct RouteDependencies: Sendable {
    /// The time limit of the look-up of a token's owner at Google.
    package static let defaultGoogleDeadline: Duration = .seconds(10)

    let store: any Store
    let engine: RefreshEngine
    let google: any GoogleLookups
    let vault: TokenVault
    let tokens: AppTokens
    /// The keys of Google's ID tokens.
    let googleKeys: KeySetCache
    /// Returns the client ids that are configured at this moment, which a reload can change.
    private let currentClientIDs: @Sendable () -> [String]
    /// The exchange of the app's codes; `nil` in tests that need none.
    let exchanges: CodeExchanges?
    let budgets: RequestBudgets
    /// The stored users that a Google account can be linked to by its e-mail address.
    let emailLinking: EmailLinking
    /// The time after a refresh in which any token of the family gets the current tokens.
    let sessionGrace: Duration
    /// The end of the time in which refresh tokens of the former backend begin a session, or `nil` if they never do.
    let acceptFormerTokensUntil: Timestamp?
    let time: any TimeSource
    let random: any RandomSource
    let log: EngineLog
    let googleDeadline: Duration

    package init(
        store: any Store,
        engine: RefreshEngine,
        google: any GoogleLookups,
        vault: TokenVault,
        tokens: AppTokens,
        googleKeys: KeySetCache,
        clientIDs: @escaping @Sendable () -> [String],
        exchanges: CodeExchanges? = nil,
        budgets: RequestBudgets,
        emailLinking: EmailLinking = .verified,
        sessionGrace: Duration = Session.defaultGrace,
        acceptFormerTokensUntil: Timestamp? = nil,
        time: any TimeSource,
        random: any RandomSource,
        log: EngineLog,
        googleDeadline: Duration = RouteDependencies.defaultGoogleDeadline
    ) {
        self.store = store
        self.engine = engine
        self.google = google
        self.vault = vault
        self.tokens = tokens
        self.googleKeys = googleKeys
        currentClientIDs = clientIDs
        self.exchanges = exchanges
        self.budgets = budgets
        self.emailLinking = emailLinking
        self.sessionGrace = sessionGrace
        self.acceptFormerTokensUntil = acceptFormerTokensUntil
        self.time = time
        self.random = random
        self.log = log
        self.googleDeadline = googleDeadline
    }

    /// The configured client ids: tokens that were issued to others are refused.
    var clientIDs: [String] { currentClientIDs() }
}

/// All routes of the public listener: the app's, Google's security events, and the two probes of a load balancer.
///
/// A request without a route gets an error in the form of the family that its path belongs to.
package struct PublicRoutes: Sendable {
    private let dependencies: RouteDependencies
    private let securityEvents: SecurityEventReceiver
    private let monitoring: MonitoringHandler

    package init(
        _ dependencies: RouteDependencies,
        securityEvents: SecurityEventReceiver,
        monitoring: MonitoringHandler
    ) {
        self.dependencies = dependencies
        self.securityEvents = securityEvents
        self.monitoring = monitoring
    }

    var routes: [Route] {
        ProfileRoutes(dependencies: dependencies).routes + SessionRoutes(dependencies: dependencies).routes + [
            securityEvents.route,
            Route("GET", "/healthz") { [monitoring] _, _ in .respond(monitoring.health().secured) },
            Route("GET", "/readyz") { [monitoring] _, _ in .respond(await monitoring.readinessWithoutDetails().secured)
            },
        ]
    }

    package var router: Router {
        Router(
            routes,
            unknownPath: { Self.response(.unknownPath, to: $0.path) },
            wrongMethod: { request, _ in Self.response(.wrongMethod, to: request.path) }
        )
    }

    /// Returns the response to a request that the server itself refuses, in the form of its path's family.
    package static func response(toRefused refusal: RequestRefusal, path: String) -> ServerResponse {
        response(APIError(publicly: refusal), to: path)
    }

    private static func response(_ error: APIError, to path: String) -> ServerResponse {
        (path.hasPrefix("/api/") ? error.comprehensionResponse : error.payPulseResponse).secured
    }
}

extension ServerResponse {
    /// Returns a response whose body is the object that `body` writes.
    static func object(status: Int = 200, headers: [ServerRequest.Field] = [], _ body: (inout JSONLine) -> Void) -> Self
    {
        var line = JSONLine()
        body(&line)
        return .json(line.bytes, status: status, headers: headers)
    }

    /// The header that forbids caching.
    static let noStore: ServerRequest.Field = ("Cache-Control", "no-store")

    /// The response with headers that forbid caching and content sniffing.
    var secured: ServerResponse {
        var response = self
        response.headers += [Self.noStore, ("X-Content-Type-Options", "nosniff")]
        return response
    }
}

extension Duration {
    /// The duration as a `Retry-After` header, rounded up so that a client that waits is not refused again.
    var retryAfter: ServerRequest.Field {
        let (seconds, attoseconds) = components
        return ("Retry-After", "\(max(1, attoseconds > 0 ? seconds + 1 : seconds))")
    }
}

extension RouteDependencies {
    /// Returns a route whose handler can throw: its error gets a response in the family's form.
    ///
    /// An internal error is logged.
    func route(
        _ method: String,
        _ pattern: String,
        form: any KeyPath<APIError, ServerResponse> & Sendable,
        _ handler: @escaping @Sendable (ServerRequest) async throws -> ServerResponse
    ) -> Route {
        Route(method, pattern) { [log] request, _ in
            do {
                return .respond(try await handler(request).secured)
            } catch {
                let known = APIError(publicly: error)
                if known == nil {
                    log.diagnostics.error("request failed", ["request": request.id, "error": "\(error)"])
                }
                return .respond((known ?? .internalError)[keyPath: form].secured)
            }
        }
    }
}

package import Base
package import Crypto
package import HTTPServer
package import Scheduler
package import Storage
package import Telemetry

/// The dependencies of the public routes.
package struct RouteDependencies: Sendable {
    /// The time limit of the look-up of a token's owner at Google.
    package static let defaultGoogleDeadline: Duration = .seconds(10)

    let store: any Store
    let engine: RefreshEngine
    let google: any GoogleLookups
    let vault: TokenVault
    let signer: TokenSigner
    /// Returns the client ids that are configured at this moment; a reload may change them.
    private let currentClientIDs: @Sendable () -> [String]
    let budgets: RequestBudgets
    /// The stored users that a Google account may be linked to by its e-mail address.
    let emailLinking: EmailLinking
    let sessionSettings: SessionSettings
    let time: any TimeSource
    let random: any RandomSource
    let log: EngineLog
    let diagnostics: DiagnosticLog
    let googleDeadline: Duration

    package init(
        store: any Store,
        engine: RefreshEngine,
        google: any GoogleLookups,
        vault: TokenVault,
        signer: TokenSigner,
        clientIDs: @escaping @Sendable () -> [String],
        budgets: RequestBudgets,
        emailLinking: EmailLinking = .verified,
        sessionSettings: SessionSettings = SessionSettings(),
        time: any TimeSource,
        random: any RandomSource,
        log: EngineLog,
        diagnostics: DiagnosticLog,
        googleDeadline: Duration = RouteDependencies.defaultGoogleDeadline
    ) {
        self.store = store
        self.engine = engine
        self.google = google
        self.vault = vault
        self.signer = signer
        currentClientIDs = clientIDs
        self.budgets = budgets
        self.emailLinking = emailLinking
        self.sessionSettings = sessionSettings
        self.time = time
        self.random = random
        self.log = log
        self.diagnostics = diagnostics
        self.googleDeadline = googleDeadline
    }

    /// The configured client ids: tokens that were issued to others are refused.
    var clientIDs: [String] { currentClientIDs() }

    var authenticator: Authenticator { Authenticator(store: store, signer: signer, time: time) }

    var identityCheck: IdentityCheck {
        IdentityCheck(google: google, clientIDs: clientIDs, deadline: googleDeadline, time: time)
    }
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
        PayPulseRoutes(dependencies: dependencies).routes + ComprehensionRoutes(dependencies: dependencies).routes + [
            securityEvents.route,
            Route("GET", "/healthz") { [monitoring] _, _ in .respond(monitoring.health().secured) },
            Route("GET", "/readyz") { [monitoring] _, _ in .respond(await monitoring.readinessWithoutDetails().secured)
            },
        ]
    }

    package var router: Router {
        Router(
            routes,
            unknownPath: { Self.response(.unknownPath, or: .unknownPath, to: $0.path) },
            wrongMethod: { request, _ in Self.response(.wrongMethod, or: .wrongMethod, to: request.path) }
        )
    }

    /// Returns the response to a request that the server itself refuses, in the form of its path's family.
    package static func response(toRefused refusal: RequestRefusal, path: String) -> ServerResponse {
        let code: PayPulseError.Code = refusal.status == 503 ? .dependencyFailure : .invalidJSON
        return response(
            PayPulseError(refusal.status, code, refusal.reason.capitalizingFirst),
            or: ComprehensionError(refusal.status, refusal.reason.capitalizingFirst),
            to: path
        )
    }

    private static func response(
        _ error: PayPulseError,
        or other: ComprehensionError,
        to path: String
    ) -> ServerResponse {
        (path.hasPrefix("/api/") ? other.response() : error.response()).secured
    }
}

extension String {
    fileprivate var capitalizingFirst: String { prefix(1).uppercased() + dropFirst() }
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

/// An error response in the envelope of one family of routes.
protocol RouteFamilyError: SendableMetatype {
    /// Translates an error into the family's; `nil` for an internal error.
    init?(_ error: any Error)

    static var internalError: Self { get }

    func response(headers: [ServerRequest.Field]) -> ServerResponse
}

extension RouteDependencies {
    /// Returns a route whose handler may throw: its error gets a response in the family's form.
    ///
    /// An internal error is logged.
    func route<FamilyError: RouteFamilyError>(
        _ method: String,
        _ pattern: String,
        failingAs family: FamilyError.Type,
        _ handler: @escaping @Sendable (ServerRequest) async throws -> ServerResponse
    ) -> Route {
        Route(method, pattern) { [diagnostics] request, _ in
            do {
                return .respond(try await handler(request).secured)
            } catch {
                if let familyError = FamilyError(error) {
                    let headers = (error as? TooManyRequests).map { [$0.retryAfter.retryAfter] } ?? []
                    return .respond(familyError.response(headers: headers).secured)
                }
                diagnostics.error("request failed", ["request": request.id, "error": "\(error)"])
                return .respond(FamilyError.internalError.response(headers: []).secured)
            }
        }
    }
}

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
    let google: any Google
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
        google: any Google,
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
    /// Verifies a body that Google posted and returns its token, as ``GoogleOAuth/SecurityEventReader`` does.
    package typealias Verification = @Sendable ([UInt8]) async throws(SecurityEventError) -> SecurityEventToken

    private let dependencies: RouteDependencies
    private let securityEvents: SecurityEventReceiver
    private let monitoring: MonitoringHandler

    package init(_ dependencies: RouteDependencies, verify: @escaping Verification, monitoring: MonitoringHandler) {
        self.dependencies = dependencies
        securityEvents = SecurityEventReceiver(
            verify: verify,
            store: dependencies.store,
            log: dependencies.log,
            time: dependencies.time,
            onChange: { [engine = dependencies.engine] in await engine.storeChanged() }
        )
        self.monitoring = monitoring
    }

    var routes: [Route] {
        dependencies.profileRoutes + dependencies.sessionRoutes + [
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
        response(.refusedByServer(refusal), to: path)
    }

    private static func response(_ error: AppError, to path: String) -> ServerResponse {
        (path.hasPrefix("/api/") ? error.sessionResponse : error.mailConnectionResponse).secured
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
        form: any KeyPath<AppError, ServerResponse> & Sendable,
        _ handler: @escaping @Sendable (ServerRequest) async throws -> ServerResponse
    ) -> Route {
        Route(method, pattern) { [log] request, _ in
            do {
                return .respond(try await handler(request).secured)
            } catch {
                let known = AppError(error)
                if known == nil {
                    log.diagnostics.error("request failed", ["request": request.id, "error": "\(error)"])
                }
                return .respond((known ?? .internalError)[keyPath: form].secured)
            }
        }
    }
}

/// The limits on requests of one address to the public routes.
///
/// Many phones share the address of their network, so only failures have a small limit: an honest phone rarely fails to
/// sign in, and a client that guesses tokens almost always fails.
package struct RequestBudgets: Sendable {
    /// The number of successful sign-ins, or of writes, that an address can make for each failed sign-in.
    static let successesPerFailure = 10

    /// The budget of sign-ins and connections that the worker or Google refuses.
    let failedSignIns: AddressBudget
    /// The budget of all sign-ins and connections: each costs two calls to Google.
    let signIns: AddressBudget
    /// The budget of requests that rotate a token, or end a grant, a session or a user.
    let writes: AddressBudget

    package init(failedSignInsPerMinute: Int, time: any TimeSource) {
        let perMinute = Self.successesPerFailure * failedSignInsPerMinute
        self.init(
            failedSignInsPerMinute: failedSignInsPerMinute,
            signInsPerMinute: perMinute,
            writesPerMinute: perMinute,
            time: time
        )
    }

    init(failedSignInsPerMinute: Int, signInsPerMinute: Int, writesPerMinute: Int, time: any TimeSource) {
        failedSignIns = AddressBudget(perMinute: failedSignInsPerMinute, time: time)
        signIns = AddressBudget(perMinute: signInsPerMinute, time: time)
        writes = AddressBudget(perMinute: writesPerMinute, time: time)
    }

    /// Counts a request that can cost a write to the store, and throws if its address has made too many.
    func spendWrite(_ request: ServerRequest) throws(AppError) {
        try Self.take(writes, request)
    }

    /// Runs a sign-in, and counts it as failed if it is refused.
    ///
    /// It counts as failed until it has succeeded: otherwise one address could have any number of guesses in progress
    /// at once. An outage of Google or of the store does not count as a failed sign-in.
    func signIn(
        _ request: ServerRequest,
        _ body: () async throws -> ServerResponse
    ) async throws -> ServerResponse {
        try Self.take(signIns, request)
        try Self.take(failedSignIns, request)
        do {
            let response = try await body()
            failedSignIns.refund(address: request.clientAddress)
            return response
        } catch {
            if !Self.isRefusal(error) { failedSignIns.refund(address: request.clientAddress) }
            throw error
        }
    }

    private static func take(_ budget: AddressBudget, _ request: ServerRequest) throws(AppError) {
        if let wait = budget.take(address: request.clientAddress) { throw .tooManyRequests(retryAfter: wait) }
    }

    private static func isRefusal(_ error: any Error) -> Bool {
        // An honest phone might have kept a genuine token for too long.
        guard let error = error as? AppError, error != .expiredToken else { return false }
        return (400..<500).contains(MailConnectionErrorForm(error).status)
    }
}

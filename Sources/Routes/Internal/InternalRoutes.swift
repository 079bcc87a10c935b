import Base
package import HTTPServer

/// The routes of the internal listener: tokens for services, the state of the process, and the status page.
package struct InternalRoutes: Sendable {
    /// The machines that can reach the listener; they decide which routes need a credential.
    package enum Exposure: Hashable, Sendable {
        /// Programs on this machine, or a proxy that protects the requests it passes on.
        case thisMachine
        /// Other machines, over TLS.
        case network(servesMetrics: Bool)
    }

    /// `nil` without a services file: then the routes of tokens say so.
    private let vending: TokenVendingHandler?
    private let monitoring: MonitoringHandler
    let statusPage: StatusPageHandler
    /// `nil` without a services file, which lists the operators.
    let lookup: UserLookup?
    private let exposure: Exposure

    package init(
        vending: TokenVendingHandler?,
        monitoring: MonitoringHandler,
        statusPage: StatusPageHandler,
        lookup: UserLookup?,
        exposure: Exposure = .thisMachine
    ) {
        self.vending = vending
        self.monitoring = monitoring
        self.statusPage = statusPage
        self.lookup = lookup
        self.exposure = exposure
    }

    var routes: [Route] {
        (vending.map(Self.tokenRoutes) ?? Self.routesWithoutServices) + monitoringRoutes + statusPageRoutes
    }

    private static let tokenPath = "/v1/grants/{user_id}/token"

    private static var routesWithoutServices: [Route] {
        [
            Route("GET", tokenPath) { _, _ in .respond(VendingError.noServices.response) },
            Route("POST", "\(tokenPath)/refresh") { _, _ in .respond(VendingError.noServices.response) },
            Route("POST", TokenVendingHandler.tokenEndpointPath) { _, _ in
                .respond(TokenEndpointError(VendingError.noServices).response)
            },
        ]
    }

    private static func tokenRoutes(_ vending: TokenVendingHandler) -> [Route] {
        [
            Route(
                "GET",
                tokenPath,
                immediateHandler: { request, values in
                    vending.immediateToken(for: request, userID: values["user_id"]).map(ServerReply.respond)
                },
                handler: { request, values in
                    .respond(await vending.token(for: request, userID: values["user_id"]))
                }
            ),
            Route("POST", "\(tokenPath)/refresh") { request, values in
                .respond(await vending.renewedToken(for: request, userID: values["user_id"]))
            },
            Route("POST", TokenVendingHandler.tokenEndpointPath) { request, _ in
                .respond(await vending.tokenEndpointResponse(to: request))
            },
        ]
    }

    private var monitoringRoutes: [Route] {
        [
            Route(
                "GET",
                "/healthz",
                immediateHandler: { [monitoring] _, _ in .respond(monitoring.health()) },
                handler: { [monitoring] _, _ in .respond(monitoring.health()) }
            ),
            Route("GET", "/readyz") { request, _ in .respond(await readiness(for: request)) },
            Route("GET", "/status") { request, _ in .respond(await status(for: request)) },
            Route("GET", "/metrics") { _, _ in .respond(await metrics()) },
        ]
    }

    /// A caller without a credential learns only if the worker is ready.
    private func readiness(for request: ServerRequest) async -> ServerResponse {
        maySeeDetails(request) ? await monitoring.readiness() : await monitoring.readinessWithoutDetails()
    }

    private func status(for request: ServerRequest) async -> ServerResponse {
        maySeeDetails(request) ? await monitoring.status() : VendingError.unauthorized.response
    }

    private func metrics() async -> ServerResponse {
        guard exposure != .network(servesMetrics: false) else {
            return Self.error("metrics_off", "metrics are served over TLS only with --internal-metrics", status: 404)
        }
        return await monitoring.prometheus()
    }

    func maySeeDetails(_ request: ServerRequest) -> Bool {
        exposure == .thisMachine || vending?.isFromService(request) ?? false
    }

    package var router: Router {
        Router(
            routes,
            unknownPath: { _ in Self.error("unknown_path", "there is no such route", status: 404) },
            wrongMethod: { request, _ in
                request.path == TokenVendingHandler.tokenEndpointPath
                    ? TokenEndpointError.wrongMethod.response
                    : Self.error("method_not_allowed", "the route has other methods", status: 405)
            }
        )
    }

    /// Returns the response to a request that the server itself refuses.
    package static func response(toRefused refusal: RequestRefusal, path: String) -> ServerResponse {
        guard path != TokenVendingHandler.tokenEndpointPath else { return TokenEndpointError(refusal).response }
        let code = refusal.status == 503 ? "unavailable" : "invalid_request"
        return error(code, refusal.reason, status: refusal.status)
    }

    private static func error(_ code: String, _ message: String, status: Int) -> ServerResponse {
        .object(status: status) { line in
            line.field("error", code)
            line.field("message", message)
        }
    }
}

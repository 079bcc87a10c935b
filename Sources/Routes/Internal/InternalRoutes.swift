import Base
package import HTTPServer

/// The routes of the internal listener: tokens for services, administration, the state of the process, and the status
/// page.
package struct InternalRoutes: Sendable {
    /// The machines that can reach the listener.
    ///
    /// They decide which routes need a credential.
    package enum Exposure: Hashable, Sendable {
        /// Programs on this machine, or a proxy that protects the requests it passes on.
        case thisMachine
        /// Other machines, over TLS.
        case network(servesMetrics: Bool)
    }

    /// `nil` without a services file: then the routes of tokens say so.
    private let vending: TokenVendingHandler?
    let administration: AdministrationHandler?
    let monitoring: MonitoringHandler
    /// `nil` without a services file, which lists the operators.
    let lookup: UserLookup?
    private let exposure: Exposure

    package init(
        vending: TokenVendingHandler?,
        administration: AdministrationHandler?,
        monitoring: MonitoringHandler,
        exposure: Exposure = .thisMachine
    ) {
        self.vending = vending
        self.administration = administration
        self.monitoring = monitoring
        lookup = vending.map { vending in
            UserLookup(
                store: monitoring.database.store,
                services: vending.services,
                database: monitoring.database,
                log: vending.log
            )
        }
        self.exposure = exposure
    }

    var routes: [Route] {
        (vending.map(Self.tokenRoutes) ?? Self.routesWithoutServices)
            + AdministrationHandler.routes(administration) + monitoringRoutes + statusPageRoutes
    }

    /// What the token endpoint accepts, for libraries that look it up (RFC 8414).
    ///
    /// The issuer is the address by which the client reached this listener. Behind a proxy that ends TLS it is the
    /// proxy's. A forged `Host` changes only the response to the one who forged it, because nothing stores it.
    private func metadata(for request: ServerRequest) -> ServerResponse {
        guard vending != nil else { return APIError.noServices.response }
        let host = request.header("Host").flatMap { $0.isEmpty ? nil : $0 } ?? "localhost"
        let isSecure = exposure != .thisMachine || request.header("X-Forwarded-Proto") == "https"
        let issuer = "\(isSecure ? "https" : "http")://\(host)"
        return .object(headers: [ServerResponse.noStore]) { line in
            line.field("issuer", issuer)
            line.field("token_endpoint", issuer + TokenVendingHandler.tokenEndpointPath)
            line.array("grant_types_supported") { array in
                for type in TokenEndpointRequest.GrantType.allCases { array.element(type.rawValue) }
            }
            line.array("token_endpoint_auth_methods_supported") { array in
                for method in ["client_secret_basic", "client_secret_post"] { array.element(method) }
            }
            // Required, although there is no authorization endpoint.
            line.array("response_types_supported") { _ in }
        }
    }

    private static let tokenPath = "/v1/grants/{user_id}/token"

    private static var routesWithoutServices: [Route] {
        [
            Route("GET", tokenPath) { _, _ in .respond(APIError.noServices.response) },
            Route("POST", "\(tokenPath)/refresh") { _, _ in .respond(APIError.noServices.response) },
            Route("POST", TokenVendingHandler.tokenEndpointPath) { _, _ in
                .respond(APIError.noServices.oauthResponse)
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
            Route("GET", "/.well-known/oauth-authorization-server") { request, _ in .respond(metadata(for: request)) },
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
        maySeeDetails(request) ? await monitoring.status() : APIError.unauthorized.response
    }

    private func metrics() async -> ServerResponse {
        guard exposure != .network(servesMetrics: false) else {
            return APIError.metricsOff.response
        }
        return await monitoring.prometheus()
    }

    func maySeeDetails(_ request: ServerRequest) -> Bool {
        exposure == .thisMachine || vending?.isFromService(request) ?? false
    }

    package var router: Router {
        Router(
            routes,
            unknownPath: { _ in APIError.unknownInternalPath.response },
            wrongMethod: { request, _ in Self.response(.wrongInternalMethod, path: request.path) }
        )
    }

    /// Returns the response to a request that the server itself refuses.
    package static func response(toRefused refusal: RequestRefusal, path: String) -> ServerResponse {
        response(APIError(internally: refusal), path: path)
    }

    private static func response(_ error: APIError, path: String) -> ServerResponse {
        path == TokenVendingHandler.tokenEndpointPath ? error.oauthResponse : error.response
    }
}

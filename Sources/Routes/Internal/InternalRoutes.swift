package import Base
package import HTTPServer
package import Scheduler
internal import Status
package import Storage

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
    let vending: TokenVendingHandler?
    let administration: AdministrationHandler?
    let monitoring: MonitoringHandler
    let exposure: Exposure

    /// `nil` without a services file, which lists the operators.
    var lookup: UserLookup? {
        guard let vending else { return nil }
        return UserLookup(
            store: monitoring.status.database.store,
            services: vending.services,
            database: monitoring.status.database,
            log: vending.log
        )
    }

    var routes: [Route] {
        tokenRoutes + AdministrationHandler.routes(administration) + monitoringRoutes + statusPageRoutes
    }

    /// What the token endpoint accepts, for libraries that look it up (RFC 8414).
    private func metadata(for request: ServerRequest) -> ServerResponse {
        guard vending != nil else { return ServiceError.noServices.response }
        let issuer = issuer(for: request)
        return .object(headers: [ServerResponse.noStore]) { line in
            line.field("issuer", issuer)
            line.field("token_endpoint", issuer + TokenVendingHandler.tokenEndpointPath)
            line.strings("grant_types_supported", TokenEndpointRequest.GrantType.allCases.map(\.rawValue))
            line.strings("token_endpoint_auth_methods_supported", ["client_secret_basic", "client_secret_post"])
            // Required, although there is no authorization endpoint.
            line.strings("response_types_supported", [])
        }
    }

    /// The address by which the client reached this listener. Behind a proxy that ends TLS it is the proxy's. A forged
    /// `Host` changes only the response to the one who forged it, because nothing stores it.
    private func issuer(for request: ServerRequest) -> String {
        var host = "localhost"
        if let name = request.header("Host"), !name.isEmpty { host = name }
        let isSecure = exposure != .thisMachine || request.header("X-Forwarded-Proto") == "https"
        return "\(isSecure ? "https" : "http")://\(host)"
    }

    private var tokenRoutes: [Route] {
        let path = "/v1/grants/{user_id}/token"
        return [
            Route(
                "GET",
                path,
                immediateHandler: { [vending] request, values in
                    guard let vending else { return nil }
                    guard let response = vending.immediateToken(for: request, userID: values["user_id"]) else {
                        return nil
                    }
                    return .respond(response)
                },
                handler: { [vending] request, values in
                    guard let vending else { return .respond(ServiceError.noServices.response) }
                    return .respond(await vending.token(for: request, userID: values["user_id"]))
                }
            ),
            Route("POST", "\(path)/refresh") { [vending] request, values in
                guard let vending else { return .respond(ServiceError.noServices.response) }
                return .respond(await vending.renewedToken(for: request, userID: values["user_id"]))
            },
            Route("POST", TokenVendingHandler.tokenEndpointPath) { [vending] request, _ in
                guard let vending else { return .respond(ServiceError.noServices.oauthResponse) }
                return .respond(await vending.tokenEndpointResponse(to: request))
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
        maySeeDetails(request) ? await monitoring.report() : ServiceError.unauthorized.response
    }

    private func metrics() async -> ServerResponse {
        if exposure == .network(servesMetrics: false) { return ServiceError.metricsOff.response }
        return await monitoring.prometheus()
    }

    func maySeeDetails(_ request: ServerRequest) -> Bool {
        if exposure == .thisMachine { return true }
        guard let vending else { return false }
        return vending.isFromService(request)
    }

    package var router: Router {
        Router(
            routes,
            unknownPath: { _ in ServiceError.unknownPath.response },
            wrongMethod: { request, _ in Self.response(.wrongMethod, path: request.path) }
        )
    }

    /// Returns the response to a request that the server itself refuses.
    package static func response(toRefused refusal: RequestError, path: String) -> ServerResponse {
        response(.refusedByServer(refusal), path: path)
    }

    private static func response(_ error: ServiceError, path: String) -> ServerResponse {
        path == TokenVendingHandler.tokenEndpointPath ? error.oauthResponse : error.response
    }
}

extension InternalRoutes {
    /// Makes the routes of a worker, which has no `services` without a services file. `clientIDs` are those of the
    /// moment, which a reload can change.
    package init(
        services: ServiceDirectory?,
        provider: TokenProvider,
        appTokens: AppTokens,
        vault: TokenVault,
        random: any RandomSource,
        clientIDs: @escaping @Sendable () -> [String],
        monitoring: MonitoringHandler,
        exposure: Exposure
    ) {
        let vending = services.map { services in
            TokenVendingHandler(
                provider: provider,
                services: services,
                appTokens: appTokens,
                log: monitoring.log,
                time: monitoring.time
            )
        }
        let administration = services.map { services in
            AdministrationHandler(
                engine: monitoring.engine,
                vault: vault,
                services: services,
                database: monitoring.status.database,
                log: monitoring.log,
                time: monitoring.time,
                random: random,
                clientIDs: clientIDs
            )
        }
        self.init(vending: vending, administration: administration, monitoring: monitoring, exposure: exposure)
    }
}

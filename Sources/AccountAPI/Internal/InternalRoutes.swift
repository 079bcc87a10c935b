package import HTTPServer
import JSON

/// The routes of the internal listener: tokens for services, and the state of the process.
package struct InternalRoutes: Sendable {
    /// The machines that can reach the listener; they decide which routes need a credential.
    package enum Exposure: Hashable, Sendable {
        /// Programs on this machine, or a proxy that protects the requests it passes on.
        case thisMachine
        /// Other machines, over TLS.
        case network(servesMetrics: Bool)
    }

    private let desk: TokenVendingHandler
    private let probes: MonitoringHandler
    private let exposure: Exposure

    package init(desk: TokenVendingHandler, probes: MonitoringHandler, exposure: Exposure = .thisMachine) {
        self.desk = desk
        self.probes = probes
        self.exposure = exposure
    }

    package var routes: [Route] {
        [
            Route(
                "GET",
                "/v1/grants/{user_id}/token",
                immediateHandler: { [desk] request, values in
                    desk.promptToken(for: request, userID: values["user_id"]).map(ServerReply.respond)
                },
                handler: { [desk] request, values in
                    .respond(await desk.token(for: request, userID: values["user_id"]))
                }
            ),
            Route("POST", "/v1/grants/{user_id}/token/refresh") { [desk] request, values in
                .respond(await desk.renewedToken(for: request, userID: values["user_id"]))
            },
            Route(
                "GET",
                "/healthz",
                immediateHandler: { [probes] _, _ in .respond(probes.health()) },
                handler: { [probes] _, _ in .respond(probes.health()) }
            ),
            Route("GET", "/readyz") { request, _ in .respond(await readiness(for: request)) },
            Route("GET", "/status") { request, _ in .respond(await status(for: request)) },
            Route("GET", "/metrics") { _, _ in .respond(await metrics()) },
        ]
    }

    /// A load balancer without a credential gets only the status code.
    private func readiness(for request: ServerRequest) async -> ServerResponse {
        mayKnowAll(request) ? await probes.readiness() : await probes.bareReadiness()
    }

    private func status(for request: ServerRequest) async -> ServerResponse {
        mayKnowAll(request) ? await probes.status() : VendingError.unauthorized.response
    }

    private func metrics() async -> ServerResponse {
        guard exposure != .network(servesMetrics: false) else {
            return Self.error("metrics_off", "metrics are served over TLS only with --internal-metrics", status: 404)
        }
        return await probes.prometheus()
    }

    private func mayKnowAll(_ request: ServerRequest) -> Bool {
        exposure == .thisMachine || desk.knowsCaller(of: request)
    }

    package var router: Router {
        Router(
            routes,
            unknownPath: { _ in Self.error("unknown_path", "there is no such route", status: 404) },
            wrongMethod: { _, _ in Self.error("method_not_allowed", "the route has other methods", status: 405) }
        )
    }

    /// Answers requests that the server itself refuses.
    package static func answer(refused refusal: RequestRefusal, path: String) -> ServerResponse {
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

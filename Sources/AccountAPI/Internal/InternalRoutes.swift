package import HTTPServer
import JSON

/// The routes of the internal listener: tokens for services, and what the process says of itself.
package struct InternalRoutes: Sendable {
    private let desk: TokenDesk
    private let probes: Probes

    package init(desk: TokenDesk, probes: Probes) {
        self.desk = desk
        self.probes = probes
    }

    package var routes: [Route] {
        [
            Route(
                "GET",
                "/v1/grants/{user_id}/token",
                quick: { [desk] request, values in
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
                quick: { [probes] _, _ in .respond(probes.health()) },
                handler: { [probes] _, _ in .respond(probes.health()) }
            ),
            Route("GET", "/readyz") { [probes] _, _ in .respond(await probes.readiness()) },
            Route("GET", "/status") { [probes] _, _ in .respond(await probes.status()) },
            Route("GET", "/metrics") { [probes] _, _ in .respond(await probes.prometheus()) },
        ]
    }

    package var router: Router {
        Router(
            routes,
            unknownPath: { _ in Self.error("unknown_path", "there is no such route", status: 404) },
            wrongMethod: { _, _ in Self.error("method_not_allowed", "the route has other methods", status: 405) }
        )
    }

    /// What the server itself turns away.
    package static func answer(refused refusal: RequestRefusal, path: String) -> ServerResponse {
        let code = refusal.status == 503 ? "unavailable" : "invalid_request"
        return error(code, refusal.reason, status: refusal.status)
    }

    private static func error(_ code: String, _ message: String, status: Int) -> ServerResponse {
        var line = JSONLine()
        line.field("error", code)
        line.field("message", message)
        return ServerResponse(status: status, headers: [("Content-Type", "application/json")], body: line.bytes)
    }
}

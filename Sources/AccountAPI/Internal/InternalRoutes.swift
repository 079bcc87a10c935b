package import HTTPServer
internal import JSON

/// What the internal listener serves: tokens for services, and what the process says of itself.
package struct InternalRoutes: Sendable {
    private let desk: TokenDesk
    private let probes: Probes

    package init(desk: TokenDesk, probes: Probes) {
        self.desk = desk
        self.probes = probes
    }

    package var routes: [Route] {
        [
            Route("GET", "/v1/grants/{user_id}/token") { [desk] request, path in
                .respond(await desk.token(for: request, userID: path["user_id"]))
            },
            Route("POST", "/v1/grants/{user_id}/token/refresh") { [desk] request, path in
                .respond(await desk.renewedToken(for: request, userID: path["user_id"]))
            },
            Route("GET", "/healthz") { [probes] _, _ in .respond(probes.health()) },
            Route("GET", "/readyz") { [probes] _, _ in .respond(await probes.readiness()) },
            Route("GET", "/status") { [probes] _, _ in .respond(await probes.status()) },
            Route("GET", "/metrics") { [probes] _, _ in .respond(await probes.prometheus()) },
        ]
    }

    package var router: Router {
        Router(
            routes,
            unknownPath: { _ in Self.refusal(status: 404, "unknown_path", "nothing is served here") },
            wrongMethod: { _, _ in Self.refusal(status: 405, "wrong_method", "the path takes other methods") }
        )
    }

    private static func refusal(status: Int, _ code: String, _ message: String) -> ServerResponse {
        .object(status: status) { body in
            body.field("error", code)
            body.field("message", message)
        }
    }
}

package import HTTPServer

/// What the internal listener serves.
package struct InternalRoutes: Sendable {
    let desk: TokenDesk
    let probes: Probes

    package init(desk: TokenDesk, probes: Probes) {
        self.desk = desk
        self.probes = probes
    }

    package var router: Router {
        Router([
            Route("GET", "/v1/grants/{user_id}/token") { .respond(await desk.token(for: $0, userID: $1["user_id"])) },
            Route("POST", "/v1/grants/{user_id}/token/refresh") {
                .respond(await desk.renewedToken(for: $0, userID: $1["user_id"]))
            },
            Route("GET", "/healthz") { _, _ in .respond(probes.health()) },
            Route("GET", "/readyz") { _, _ in .respond(await probes.readiness()) },
            Route("GET", "/status") { _, _ in .respond(await probes.status()) },
            Route("GET", "/metrics") { _, _ in .respond(await probes.prometheus()) },
        ])
    }
}

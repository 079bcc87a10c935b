package import HTTPServer

/// Every route of the public listener: the app's, Google's security events, and the two probes of a load balancer.
///
/// What no route answers is told in the words of the family that the path belongs to.
package struct PublicRoutes: Sendable {
    private let services: AccountServices
    private let securityEvents: SecurityEventReceiver
    private let probes: Probes

    package init(_ services: AccountServices, securityEvents: SecurityEventReceiver, probes: Probes) {
        self.services = services
        self.securityEvents = securityEvents
        self.probes = probes
    }

    package var routes: [Route] {
        PayPulseRoutes(services: services).routes + ComprehensionRoutes(services: services).routes + [
            securityEvents.route,
            Route("GET", "/healthz") { [probes] _, _ in .respond(probes.health().secured) },
            Route("GET", "/readyz") { [probes] _, _ in .respond(await probes.bareReadiness().secured) },
        ]
    }

    package var router: Router {
        Router(
            routes,
            unknownPath: { request in
                Self.belongsToComprehensionEngine(request)
                    ? ComprehensionError.unknownPath.response().secured
                    : PayPulseError.unknownPath.response().secured
            },
            wrongMethod: { request, _ in
                Self.belongsToComprehensionEngine(request)
                    ? ComprehensionError.wrongMethod.response().secured
                    : PayPulseError.wrongMethod.response().secured
            }
        )
    }

    private static func belongsToComprehensionEngine(_ request: ServerRequest) -> Bool {
        request.path.hasPrefix("/api/")
    }
}

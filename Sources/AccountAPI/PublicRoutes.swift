package import HTTPServer

/// All routes of the public listener: the app's, Google's security events, and the two probes of a load balancer.
///
/// Requests without a route are answered in the form of the family that the path belongs to.
package struct PublicRoutes: Sendable {
    private let services: RouteDependencies
    private let securityEvents: SecurityEventReceiver
    private let probes: MonitoringHandler

    package init(_ services: RouteDependencies, securityEvents: SecurityEventReceiver, probes: MonitoringHandler) {
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
            unknownPath: { Self.answer(.unknownPath, or: .unknownPath, to: $0.path) },
            wrongMethod: { request, _ in Self.answer(.wrongMethod, or: .wrongMethod, to: request.path) }
        )
    }

    /// Answers requests that the server itself refuses, in the form of the family that the path belongs to.
    package static func answer(refused refusal: RequestRefusal, path: String) -> ServerResponse {
        let code: PayPulseError.Code = refusal.status == 503 ? .dependencyFailure : .invalidJSON
        return answer(
            PayPulseError(refusal.status, code, refusal.reason.capitalizingFirst),
            or: ComprehensionError(refusal.status, refusal.reason.capitalizingFirst),
            to: path
        )
    }

    private static func answer(
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

package import HTTPServer

/// All routes of the public listener: the app's, Google's security events, and the two probes of a load balancer.
///
/// A request without a route gets an error in the form of the family that its path belongs to.
package struct PublicRoutes: Sendable {
    private let dependencies: RouteDependencies
    private let securityEvents: SecurityEventReceiver
    private let monitoring: MonitoringHandler

    package init(
        _ dependencies: RouteDependencies,
        securityEvents: SecurityEventReceiver,
        monitoring: MonitoringHandler
    ) {
        self.dependencies = dependencies
        self.securityEvents = securityEvents
        self.monitoring = monitoring
    }

    package var routes: [Route] {
        PayPulseRoutes(dependencies: dependencies).routes + ComprehensionRoutes(dependencies: dependencies).routes + [
            securityEvents.route,
            Route("GET", "/healthz") { [monitoring] _, _ in .respond(monitoring.health().secured) },
            Route("GET", "/readyz") { [monitoring] _, _ in .respond(await monitoring.readinessWithoutDetails().secured)
            },
        ]
    }

    package var router: Router {
        Router(
            routes,
            unknownPath: { Self.response(.unknownPath, or: .unknownPath, to: $0.path) },
            wrongMethod: { request, _ in Self.response(.wrongMethod, or: .wrongMethod, to: request.path) }
        )
    }

    /// Returns the response to a request that the server itself refuses, in the form of its path's family.
    package static func response(toRefused refusal: RequestRefusal, path: String) -> ServerResponse {
        let code: PayPulseError.Code = refusal.status == 503 ? .dependencyFailure : .invalidJSON
        return response(
            PayPulseError(refusal.status, code, refusal.reason.capitalizingFirst),
            or: ComprehensionError(refusal.status, refusal.reason.capitalizingFirst),
            to: path
        )
    }

    private static func response(
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

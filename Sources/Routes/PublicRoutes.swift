package import GoogleOAuth
package import HTTPServer
internal import Scheduler
internal import Storage

/// All routes of the public listener: the app's, Google's security events, and the two probes of a load balancer.
///
/// A request without a route gets an error in the form of the family that its path belongs to.
package struct PublicRoutes: Sendable {
    /// Verifies a body that Google posted and returns its token, as ``GoogleOAuth/SecurityEventReader`` does.
    package typealias Verification = @Sendable ([UInt8]) async throws(SecurityEventError) -> SecurityEventToken

    private let app: AppRoutes
    private let securityEvents: SecurityEventReceiver
    private let monitoring: MonitoringHandler

    package init(
        _ dependencies: AppRoutes.Dependencies,
        verify: @escaping Verification,
        monitoring: MonitoringHandler
    ) {
        app = AppRoutes(dependencies: dependencies)
        securityEvents = SecurityEventReceiver(
            verify: verify,
            store: dependencies.store,
            log: dependencies.log,
            time: dependencies.time,
            onChange: { [engine = dependencies.engine] in await engine.storeChanged() }
        )
        self.monitoring = monitoring
    }

    var routes: [Route] {
        app.routes + [
            securityEvents.route,
            Route("GET", "/healthz") { [monitoring] _, _ in
                .respond(monitoring.health().secured)
            },
            Route("GET", "/readyz") { [monitoring] _, _ in
                .respond(await monitoring.readinessWithoutDetails().secured)
            },
        ]
    }

    package var router: Router {
        Router(
            routes,
            unknownPath: { Self.response(.unknownPath, to: $0.path) },
            wrongMethod: { request, _ in Self.response(.wrongMethod, to: request.path) }
        )
    }

    /// Returns the response to a request that the server itself refuses, in the form of its path's family.
    package static func response(toRefused refusal: RequestError, path: String) -> ServerResponse {
        response(.refusedByServer(refusal), to: path)
    }

    private static func response(_ error: AppError, to path: String) -> ServerResponse {
        let isSessionPath = path.hasPrefix("/api/")
        return (isSessionPath ? error.sessionResponse : error.payPulseResponse).secured
    }
}

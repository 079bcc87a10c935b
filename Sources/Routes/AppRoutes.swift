internal import HTTPServer
internal import Scheduler
internal import Telemetry

/// The routes that the app calls, in three families.
///
/// ``ConnectionRoutes`` connect a user's Google accounts. ``PayPulseRoutes`` are those of PayPulse's backend: they
/// know the default connection alone, and show the profile. ``SessionRoutes`` sign the app in.
package struct AppRoutes: Sendable {
    let dependencies: Dependencies

    var routes: [Route] {
        ConnectionRoutes(dependencies: dependencies).routes + PayPulseRoutes(dependencies: dependencies).routes
            + SessionRoutes(dependencies: dependencies).routes
    }
}

extension Route {
    /// Makes a route whose handler can throw: its error gets a response in the form of the route's family. An internal
    /// error is logged.
    init(
        _ method: String,
        _ pattern: String,
        errorForm: any KeyPath<AppError, ServerResponse> & Sendable,
        log: EngineLog,
        handler: @escaping @Sendable (ServerRequest, PathValues) async throws -> ServerResponse
    ) {
        self.init(method, pattern) { request, values in
            do {
                return .respond(try await handler(request, values).secured)
            } catch {
                let known = AppError(error)
                if known == nil {
                    log.diagnostics.error("request failed", ["request": request.id, "error": "\(error)"])
                }
                return .respond((known ?? .internalError)[keyPath: errorForm].secured)
            }
        }
    }
}

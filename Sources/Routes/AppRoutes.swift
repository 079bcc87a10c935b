internal import HTTPServer
internal import Scheduler
internal import Telemetry

/// The routes that the app calls, in two families.
///
/// ``MailConnectionRoutes`` connect a user's Gmail and show the profile. ``SessionRoutes`` sign the app in.
package struct AppRoutes: Sendable {
    let dependencies: Dependencies

    var routes: [Route] {
        MailConnectionRoutes(dependencies: dependencies).routes + SessionRoutes(dependencies: dependencies).routes
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
        handler: @escaping @Sendable (ServerRequest) async throws -> ServerResponse
    ) {
        self.init(method, pattern) { request, _ in
            do {
                return .respond(try await handler(request).secured)
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

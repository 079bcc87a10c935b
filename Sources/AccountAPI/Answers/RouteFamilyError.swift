internal import HTTPServer
internal import Observability

/// An error answer in the envelope of one family of routes.
protocol RouteFamilyError: SendableMetatype {
    /// Translates an error into the family's; `nil` for an internal error.
    init?(_ error: any Error)

    static var internalError: Self { get }

    func response(headers: [ServerRequest.Field]) -> ServerResponse
}

extension RouteDependencies {
    /// Returns a route whose handler may throw: its error is answered in the family's form, or logged if it is
    /// internal.
    func route<Failure: RouteFamilyError>(
        _ method: String,
        _ pattern: String,
        failingAs family: Failure.Type,
        _ handler: @escaping @Sendable (ServerRequest) async throws -> ServerResponse
    ) -> Route {
        Route(method, pattern) { [diagnostics] request, _ in
            do {
                return .respond(try await handler(request).secured)
            } catch {
                if let known = Failure(error) {
                    let wait = (error as? TooManyRequests).map { [$0.retryAfter.retryAfter] } ?? []
                    return .respond(known.response(headers: wait).secured)
                }
                diagnostics.error("request failed", ["request": request.id, "error": "\(error)"])
                return .respond(Failure.internalError.response(headers: []).secured)
            }
        }
    }
}

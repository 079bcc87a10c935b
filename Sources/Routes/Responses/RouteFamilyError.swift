internal import HTTPServer
internal import Telemetry

/// An error response in the envelope of one family of routes.
protocol RouteFamilyError: SendableMetatype {
    /// Translates an error into the family's; `nil` for an internal error.
    init?(_ error: any Error)

    static var internalError: Self { get }

    func response(headers: [ServerRequest.Field]) -> ServerResponse
}

extension RouteDependencies {
    /// Returns a route whose handler may throw: its error gets a response in the family's form.
    ///
    /// An internal error is logged.
    func route<FamilyError: RouteFamilyError>(
        _ method: String,
        _ pattern: String,
        failingAs family: FamilyError.Type,
        _ handler: @escaping @Sendable (ServerRequest) async throws -> ServerResponse
    ) -> Route {
        Route(method, pattern) { [diagnostics] request, _ in
            do {
                return .respond(try await handler(request).secured)
            } catch {
                if let familyError = FamilyError(error) {
                    let headers = (error as? TooManyRequests).map { [$0.retryAfter.retryAfter] } ?? []
                    return .respond(familyError.response(headers: headers).secured)
                }
                diagnostics.error("request failed", ["request": request.id, "error": "\(error)"])
                return .respond(FamilyError.internalError.response(headers: []).secured)
            }
        }
    }
}

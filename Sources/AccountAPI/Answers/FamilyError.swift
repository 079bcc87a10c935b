internal import HTTPServer
internal import Observability

/// An answer that is no success, in the envelope of one family of routes.
protocol FamilyError: SendableMetatype {
    /// Says an error in the family's words; `nil` for one that is the program's own.
    init?(_ error: any Error)

    static var internalError: Self { get }

    func response(headers: [ServerRequest.Field]) -> ServerResponse
}

extension AccountServices {
    /// A route whose handler may throw: what it throws is told in the family's words, or logged where it is the program's own.
    func route<Failure: FamilyError>(
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

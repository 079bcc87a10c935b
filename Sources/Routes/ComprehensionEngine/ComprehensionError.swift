internal import Base
internal import HTTPServer

/// An error response of the ComprehensionEngine family: a status and one fixed text.
struct ComprehensionError: Error, Hashable, Sendable, RouteFamilyError {
    var status: Int
    var detail: String

    init(_ status: Int, _ detail: String) {
        self.status = status
        self.detail = detail
    }

    /// Translates an error into the family's; `nil` for an internal error.
    init?(_ error: any Error) {
        switch error {
        case let error as ComprehensionError: self = error
        // The app reacts to every refusal in the same way: it refreshes once, then signs out.
        case is AuthenticationRefusal: self = .notAuthenticated
        case RequestBodyError.undeclared: self.init(411, "A body is required, and its Content-Length")
        case RequestBodyError.unsupportedMediaType: self.init(415, "The body must be application/json")
        case RequestBodyError.unreadable: self.init(400, "The body is not a JSON object")
        case RequestBodyError.missing(let name): self.init(400, "\(name) is required")
        case RequestBodyError.invalid(let name, let requirement): self.init(400, "\(name) must be \(requirement)")
        case IdentityFailure.refused: self.init(400, "Invalid Google access token")
        case is IdentityFailure: self.init(502, "Google cannot be reached; try again")
        case is TooManyRequests: self.init(429, "Too many requests; try again later")
        default: return nil
        }
    }

    static let notAuthenticated = ComprehensionError(401, "Could not validate credentials")
    static let invalidRefreshToken = ComprehensionError(401, "Invalid refresh token")
    static let unknownPath = ComprehensionError(404, "Not Found")
    static let wrongMethod = ComprehensionError(405, "Method Not Allowed")
    /// The former backend has signed the user in, and no import has brought the user yet.
    static let notMovedYet = ComprehensionError(503, "The user is not moved yet; try again")
    static let internalError = ComprehensionError(500, "Internal Server Error")

    func response(headers: [ServerRequest.Field] = []) -> ServerResponse {
        let own: [ServerRequest.Field] =
            switch status {
            case 401: [("WWW-Authenticate", "Bearer")]
            case 503: [Duration.seconds(60).retryAfter]
            default: []
            }
        return .object(status: status, headers: own + headers) { $0.field("detail", detail) }
    }
}

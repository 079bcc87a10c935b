internal import Base
internal import HTTPServer
internal import Scheduler

/// An error response of the PayPulse family: a status, one of the family's codes, and a fixed text.
struct PayPulseError: Hashable, Sendable, RouteFamilyError {
    enum Code: String, CaseIterable, Sendable {
        case invalidCredentials = "INVALID_CREDENTIALS"
        case invalidToken = "INVALID_TOKEN"
        case tokenExpired = "TOKEN_EXPIRED"
        case userNotFound = "USER_NOT_FOUND"
        case invalidJSON = "INVALID_JSON"
        case missingFields = "MISSING_FIELDS"
        case dependencyFailure = "DEPENDENCY_FAILURE"
        case internalServerError = "INTERNAL_SERVER_ERROR"
        case notFound = "NOT_FOUND"
        case methodNotAllowed = "METHOD_NOT_ALLOWED"
    }

    var status: Int
    var code: Code
    var message: String

    /// Translates an error into the family's; `nil` for an internal error.
    init?(_ error: any Error) {
        switch error {
        case let refusal as AuthenticationRefusal: self.init(refusal)
        case let problem as RequestBodyError: self.init(problem)
        case IdentityFailure.refused:
            self.init(400, .invalidCredentials, "Google does not accept this access token for this app")
        case is IdentityFailure, is VendingFailure:
            self.init(502, .dependencyFailure, "Google cannot be reached; try again")
        case is TooManyRequests:
            // The family does not have a code for this limit. It protects Google and the store, so their code fits
            // best.
            self.init(429, .dependencyFailure, "Too many requests; try again later")
        default: return nil
        }
    }

    init(_ status: Int, _ code: Code, _ message: String) {
        self.status = status
        self.code = code
        self.message = message
    }

    private init(_ refusal: AuthenticationRefusal) {
        switch refusal {
        case .missing: self.init(401, .invalidCredentials, "Authorization with a bearer token is required")
        case .invalid: self.init(401, .invalidToken, "The token is not valid")
        case .expired: self.init(401, .tokenExpired, "The token has expired")
        case .deleted: self.init(404, .userNotFound, "There is no such user")
        case .inactive: self.init(401, .invalidCredentials, "The user is not active")
        }
    }

    private init(_ problem: RequestBodyError) {
        switch problem {
        case .undeclared: self.init(411, .invalidJSON, "A body is required, and its Content-Length")
        case .unsupportedMediaType:
            self.init(415, .invalidJSON, "The body must be application/json or application/x-www-form-urlencoded")
        case .unreadable: self.init(400, .invalidJSON, "The body is not a JSON object")
        case .missing(let name): self.init(400, .missingFields, "\(name) is required")
        case .invalid(let name, let requirement): self.init(400, .invalidJSON, "\(name) must be \(requirement)")
        }
    }

    static let unknownPath = PayPulseError(404, .notFound, "There is no such route")
    static let wrongMethod = PayPulseError(405, .methodNotAllowed, "The route does not accept this method")
    static let internalError = PayPulseError(500, .internalServerError, "The server could not do this; try again")

    func response(headers: [ServerRequest.Field] = []) -> ServerResponse {
        let challenge: [ServerRequest.Field] = status == 401 ? [("WWW-Authenticate", "Bearer")] : []
        return .object(status: status, headers: challenge + headers) { line in
            line.object("error") { error in
                error.field("code", code.rawValue)
                error.field("message", message)
            }
        }
    }
}

internal import Base
internal import HTTPServer
internal import Storage

/// The errors of the routes under `/v1/`, and of every public path outside `/api/`, as PayPulse's app reads them:
///
///     {"error": {"code": "INVALID_TOKEN", "message": "The token is not valid"}}
struct PayPulseErrorForm: Hashable, Sendable {
    /// The codes of PayPulse's app, and those that it does not have.
    enum Code: String, CaseIterable, Sendable {
        case invalidCredentials = "INVALID_CREDENTIALS"
        case invalidToken = "INVALID_TOKEN"
        case tokenExpired = "TOKEN_EXPIRED"
        case userNotFound = "USER_NOT_FOUND"
        case invalidJSON = "INVALID_JSON"
        case missingFields = "MISSING_FIELDS"
        case dependencyFailure = "DEPENDENCY_FAILURE"
        case internalServerError = "INTERNAL_SERVER_ERROR"
        // New ones.
        case invalidCode = "INVALID_CODE"
        case notFound = "NOT_FOUND"
        case connectionNotFound = "CONNECTION_NOT_FOUND"
        case accountMismatch = "ACCOUNT_MISMATCH"
        case accountSwitch = "ACCOUNT_SWITCH"
        case accountConnected = "ACCOUNT_CONNECTED"
        case tooManyConnections = "TOO_MANY_CONNECTIONS"
        case methodNotAllowed = "METHOD_NOT_ALLOWED"
    }

    let status: Int
    let code: Code
    let message: String

    private init(_ status: Int, code: Code, message: String) {
        self.status = status
        self.code = code
        self.message = message
    }

    init(_ error: AppError) {
        self =
            switch error {
            // The caller.
            case .missingToken:
                Self(401, code: .invalidCredentials, message: "Authorization with a bearer token is required")
            case .invalidToken:
                Self(401, code: .invalidToken, message: "The token is not valid")
            case .expiredToken:
                Self(401, code: .tokenExpired, message: "The token has expired")
            case .foreignToken:
                Self(401, code: .invalidToken, message: "The token is of another issuer or for another audience")
            case .keysUnavailable:
                Self(
                    503,
                    code: .dependencyFailure,
                    message: "The keys of the app's login cannot be fetched; try again"
                )
            case .deletedUser:
                Self(404, code: .userNotFound, message: "There is no such user")
            case .inactiveUser:
                Self(401, code: .invalidCredentials, message: "The user is not active")
            case .invalidRefreshToken:
                Self(401, code: .invalidToken, message: "Invalid refresh token")
            case .notMovedYet:
                Self(503, code: .dependencyFailure, message: "The user is not moved yet; try again")
            case .tooManyRequests:
                // PayPulse has no code for this limit. It protects Google and the store, so their code fits best.
                Self(429, code: .dependencyFailure, message: "Too many requests; try again later")

            // Google.
            case .refusedByGoogle:
                Self(
                    400,
                    code: .invalidCredentials,
                    message: "Google does not accept this access token for this app"
                )
            case .refusedIDToken:
                Self(
                    400,
                    code: .invalidCredentials,
                    message: "The ID token is not valid for this app, or was used before"
                )
            case .googleUnreachable:
                Self(502, code: .dependencyFailure, message: "Google cannot be reached; try again")
            case .refusedCode:
                Self(
                    400,
                    code: .invalidCode,
                    message: """
                        Google does not accept this server_auth_code: it can be used once, soon after the sign-in; \
                        sign in again
                        """
                )
            case .noServerClient:
                Self(
                    400,
                    code: .invalidCode,
                    message: "This server takes no server_auth_code: it has no server client id"
                )
            case .codeOfOtherAccount:
                Self(
                    400,
                    code: .invalidCredentials,
                    message: "The server_auth_code belongs to another Google account than the access_token"
                )
            case .accountMismatch(let expected, let found):
                Self(
                    409,
                    code: .accountMismatch,
                    message: "This connection belongs to \(expected), and the tokens to \(found)"
                )
            case .accountIsConnected(let connection):
                Self(
                    409,
                    code: .accountConnected,
                    message: "The account of the tokens is the connection \(connection) of this user"
                )
            case .accountSwitch(let from, let to):
                Self(
                    409,
                    code: .accountSwitch,
                    message: "The user is connected as \(from), and the tokens are of \(to)"
                )
            case .unknownConnection:
                Self(404, code: .connectionNotFound, message: "This user has no such connection")
            case .tooManyConnections(let limit):
                Self(
                    409,
                    code: .tooManyConnections,
                    message: "This user has \(limit) connections, the most that are possible"
                )
            case .stillConnecting:
                Self(
                    503,
                    code: .dependencyFailure,
                    message: "The connection is not stored yet; send the same code again"
                )

            // The request.
            case .undeclaredBody:
                Self(411, code: .invalidJSON, message: "A body is required, and its Content-Length")
            case .unsupportedMediaType:
                Self(
                    415,
                    code: .invalidJSON,
                    message: "The body must be application/json or application/x-www-form-urlencoded"
                )
            case .unreadableBody:
                Self(400, code: .invalidJSON, message: "The body is not a JSON object")
            case .missingField(let name):
                Self(400, code: .missingFields, message: "\(name) is required")
            case .invalidField(let name, let requirement):
                Self(400, code: .invalidJSON, message: "\(name) must be \(requirement)")
            case .unknownPath:
                Self(404, code: .notFound, message: "There is no such route")
            case .wrongMethod:
                Self(405, code: .methodNotAllowed, message: "The route does not accept this method")
            case .refusedByServer(let refusal):
                Self(
                    refusal.status,
                    code: refusal.status == 503 ? .dependencyFailure : .invalidJSON,
                    message: refusal.reason.prefix(1).uppercased() + refusal.reason.dropFirst()
                )
            case .internalError:
                Self(500, code: .internalServerError, message: "The server could not do this; try again")
            }
    }
}

extension AppError {
    var payPulseResponse: ServerResponse {
        let form = PayPulseErrorForm(self)
        return .object(status: form.status, headers: headers(status: form.status)) { line in
            line.object("error") { error in
                error.field("code", form.code.rawValue)
                error.field("message", form.message)
                switch self {
                case .accountMismatch(let expected, let found), .accountSwitch(let expected, let found):
                    error.field("expected", expected)
                    error.field("found", found)
                case .accountIsConnected(let connection): error.field("connection", connection.description)
                default: break
                }
            }
        }
    }
}

import HTTPServer

/// The reason why the page or a user is not shown: status, code for the audit, and text of the response.
enum StatusPageRefusal: Error, Hashable, Sendable {
    case unauthorized
    case notOperator
    /// The operator may not look up this user.
    case userNotAllowed
    case invalidUser(String)
    /// The worker has no services file.
    case noServices
    case storeUnavailable
    case auditUnavailable

    private static let wait: Duration = .seconds(5)

    var status: Int {
        switch self {
        case .invalidUser: 400
        case .unauthorized: 401
        case .notOperator, .userNotAllowed: 403
        case .noServices, .storeUnavailable, .auditUnavailable: 503
        }
    }

    var code: String {
        switch self {
        case .unauthorized: "unauthorized"
        case .notOperator, .userNotAllowed: "forbidden"
        case .invalidUser: "invalid_request"
        case .noServices: "no_services"
        case .storeUnavailable: "store_unavailable"
        case .auditUnavailable: "audit_unavailable"
        }
    }

    private var message: String {
        switch self {
        case .unauthorized: "the name and the credential of a service are needed"
        case .notOperator: #"this service may not look up users: its entry in the services file needs "operator": true"#
        case .userNotAllowed: #"this service may not look up this user: see "users" of its entry in the services file"#
        case .invalidUser(let problem): problem
        case .noServices: "this worker cannot look up users: it has no --services-file, which lists the operators"
        case .storeUnavailable: "the database cannot be read now"
        case .auditUnavailable: "the audit cannot be written now, and users are not shown without it"
        }
    }

    var response: ServerResponse {
        var response = ServerResponse.text("\(message)\n", status: status)
        response.headers += StatusPageHandler.headers
        switch status {
        // A browser asks its user for both (RFC 7617).
        case 401:
            response.headers.append(("WWW-Authenticate", #"Basic realm="refresh-worker", charset="UTF-8""#))
        case 503: response.headers.append(Self.wait.retryAfter)
        default: break
        }
        return response
    }
}

import Base
import HTTPServer
import Storage
import Telemetry

/// An error of the token endpoint (RFC 6749, section 5.2).
///
/// Libraries take `invalid_grant` to mean that the user must sign in again, so nothing else has this code. Everything
/// that may pass is 503.
struct TokenEndpointError: Sendable {
    /// The wait after which a service asks again about a suspended grant, which is probed once a day.
    private static let suspensionWait: Duration = .seconds(3600)
    private static let defaultWait: Duration = .seconds(5)

    private let status: Int
    private let code: String
    private let description: String
    private var headers: [ServerRequest.Field] = []

    init(_ error: VendingError) {
        description = Self.description(of: error)
        switch error {
        case .invalidRequest, .unsupportedGrantType, .invalidTarget:
            status = 400
            code = error.code
        case .unauthorized:
            status = 401
            code = "invalid_client"
            headers = [("WWW-Authenticate", #"Basic realm="refresh-worker""#)]
        case .forbidden(.user), .forbidden(.tokens):
            status = 400
            code = "unauthorized_client"
        case .forbidden(.scopes), .forbidden(.unnamedScopes), .missingScopes:
            status = 400
            code = "invalid_scope"
        case .mustAct(.suspended, _, _):
            status = 503
            code = "temporarily_unavailable"
            headers = [Self.suspensionWait.retryAfter]
        case .notFound, .mustAct:
            status = 400
            code = "invalid_grant"
        case .unreadable:
            status = 500
            code = "server_error"
        case .unavailable, .storeUnavailable, .auditUnavailable, .noServices:
            status = 503
            code = "temporarily_unavailable"
            headers = [error.retryWait.retryAfter]
        }
    }

    /// Makes the error for a request that the server itself refuses.
    init(_ refusal: RequestRefusal) {
        status = refusal.status
        description = refusal.reason
        let mayPass = refusal.status == 503
        code = mayPass ? "temporarily_unavailable" : "invalid_request"
        headers = mayPass ? [Self.defaultWait.retryAfter] : []
    }

    private init(status: Int, code: String, description: String) {
        self.status = status
        self.code = code
        self.description = description
    }

    static let wrongMethod = TokenEndpointError(
        status: 405,
        code: "invalid_request",
        description: "the token endpoint has only POST"
    )

    private static func description(of error: VendingError) -> String {
        switch error {
        case .unauthorized: "the client_id must be a service, and the client_secret its credential"
        case .missingScopes(let scopes): "\(error.message): \(scopes.joined(separator: " "))"
        case .mustAct(_, let reason, let since):
            "\(error.message): \(reason.rawValue) since \(since.iso8601Seconds)"
        case .unavailable(let reason, _): "\(error.message): \(reason)"
        default: error.message
        }
    }

    var response: ServerResponse {
        .object(status: status, headers: TokenEndpointResponse.headers + headers) { line in
            line.field("error", code)
            line.field("error_description", description)
        }
    }
}

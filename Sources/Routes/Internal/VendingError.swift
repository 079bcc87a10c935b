import Base
import HTTPServer
import Scheduler
import Storage
import Telemetry

/// The reason why a service does not get a token: status, code and text of the response.
enum VendingError: Error, Hashable, Sendable {
    case invalidRequest(String)
    /// The token endpoint does not have this grant type.
    case unsupportedGrantType
    /// Token exchange for a named target: Google's tokens cannot be limited to one.
    case invalidTarget
    case unauthorized
    case forbidden(Service.Refusal)
    case notFound
    case missingScopes([String])
    /// The user, or an administrator, must act first.
    case mustAct(state: GrantState, reason: GrantReason, since: Timestamp)
    /// Google cannot be reached and no valid token is stored, or a refresh has just been tried.
    case unavailable(reason: String, wait: Duration)
    case storeUnavailable
    case auditUnavailable
    /// The worker has no services file. It is an error of the server: 401 would blame the service's credential.
    case noServices
    /// The key ring does not open the stored token.
    case unreadable

    /// The wait before the next try if the cause does not determine one: shorter than most outages, and long enough to
    /// prevent a busy loop.
    private static let defaultWait: Duration = .seconds(5)

    init(_ error: any Error) {
        switch error {
        case let refusal as VendingError: self = refusal
        case let failure as VendingFailure: self.init(failure)
        case is CancellationError: self = .unavailable(reason: VendReason.stopping.rawValue, wait: Self.defaultWait)
        default: self = .storeUnavailable
        }
    }

    private init(_ failure: VendingFailure) {
        switch failure {
        case .unknownUser: self = .notFound
        case .refused(let state, let reason, let since):
            self = reason == .userDeleted ? .notFound : .mustAct(state: state, reason: reason, since: since)
        case .unavailable(let reason): self = .unavailable(reason: reason, wait: Self.defaultWait)
        case .tooSoon(let wait): self = .unavailable(reason: VendReason.justTried.rawValue, wait: wait)
        case .unreadable: self = .unreadable
        }
    }

    var status: Int {
        switch self {
        case .invalidRequest, .unsupportedGrantType, .invalidTarget: 400
        case .unauthorized: 401
        case .forbidden, .missingScopes: 403
        case .notFound: 404
        case .mustAct: 409
        case .unreadable: 500
        case .unavailable, .storeUnavailable, .auditUnavailable, .noServices: 503
        }
    }

    var code: String {
        switch self {
        case .invalidRequest: "invalid_request"
        case .unsupportedGrantType: "unsupported_grant_type"
        case .invalidTarget: "invalid_target"
        case .unauthorized: "unauthorized"
        case .forbidden: "forbidden"
        case .missingScopes: "missing_scopes"
        case .notFound: "not_found"
        case .mustAct(let state, _, _): state.rawValue
        case .unreadable: "token_unreadable"
        case .unavailable: "unavailable"
        case .storeUnavailable: "store_unavailable"
        case .auditUnavailable: "audit_unavailable"
        case .noServices: "no_services"
        }
    }

    var message: String {
        switch self {
        case .invalidRequest(let problem): problem
        case .unsupportedGrantType: "there are the grant types refresh_token and token-exchange"
        case .invalidTarget: "a token cannot be limited to an audience or a resource"
        case .unauthorized: "a known credential is needed: Authorization: Bearer"
        case .forbidden(let refusal): refusal.message
        case .missingScopes: "the user has not granted all of the requested scopes"
        case .notFound: "this user does not have a grant"
        case .mustAct(.suspended, _, _): "an administrator or a policy blocks the account"
        case .mustAct(.reauthRequired, _, _): "the user must sign in with Google again"
        case .mustAct: "the account is disconnected"
        case .unreadable: "the stored token cannot be opened with the worker's key ring"
        case .unavailable: "Google does not issue a token now"
        case .storeUnavailable: "the database cannot be read now"
        case .noServices: "this worker vends no tokens: it has no --services-file"
        case .auditUnavailable: "the audit cannot be written now, and tokens are not vended without it"
        }
    }

    var response: ServerResponse {
        .object(status: status, headers: [ServerResponse.noStore] + headers) { line in
            line.field("error", code)
            line.field("message", message)
            switch self {
            case .missingScopes(let scopes):
                line.array("missing") { array in for scope in scopes { array.element(scope) } }
            case .mustAct(_, let reason, let since):
                line.field("reason", reason.rawValue)
                line.field("since", since.iso8601Seconds)
            case .unavailable(let reason, _):
                line.field("reason", reason)
            case .invalidRequest, .unsupportedGrantType, .invalidTarget, .unauthorized, .forbidden, .notFound,
                .unreadable, .storeUnavailable, .auditUnavailable, .noServices:
                break
            }
        }
    }

    private var headers: [ServerRequest.Field] {
        if self == .unauthorized { return [("WWW-Authenticate", "Bearer")] }
        return status == 503 ? [retryWait.retryAfter] : []
    }

    /// The wait before the next try of a request that may succeed later.
    var retryWait: Duration {
        if case .unavailable(_, let wait) = self { wait } else { Self.defaultWait }
    }
}

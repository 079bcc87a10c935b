internal import Base
internal import HTTPServer
internal import Scheduler
internal import Storage

/// An error of a route of the internal listener: what a service, an operator or a monitor gets.
///
/// It has three forms: ``InternalErrorForm``, ``OAuthErrorForm`` at the token endpoint, and a text on the status page.
enum ServiceError: Error, Hashable, Sendable {
    /// The wait before the next try if the cause does not determine one: shorter than most outages, and long enough to
    /// prevent a busy loop.
    private static let defaultWait: Duration = .seconds(5)
    /// The wait after which a service asks again about a suspended grant, which is probed once a day.
    private static let suspensionWait: Duration = .seconds(3600)

    // MARK: Any request

    case unauthorized
    case invalidRequest(String)
    case storeUnavailable
    /// The worker has no services file. It is an error of the server: 401 would blame the service's credential.
    case noServices
    case unknownPath
    case wrongMethod
    case metricsOff
    /// The server refuses the request before a route gets it.
    case refusedByServer(RequestError)

    // MARK: A request for a token

    case unsupportedGrantType
    /// Token exchange for a named target: Google's tokens cannot be limited to one.
    case invalidTarget
    case forbiddenUser
    /// The service may have tokens of other connections of its users alone.
    case forbiddenConnection
    /// The service names a user whose own token it must present.
    case absentUser
    /// The service only looks up users.
    case forbiddenTokens
    /// The service must name scopes, and named none.
    case unnamedScopes
    case forbiddenScopes
    case missingScopes([String])
    case noGrant
    /// The user, or an administrator, must act first.
    case mustAct(state: GrantState, reason: GrantReason, since: Timestamp)
    /// No valid token is stored, and Google cannot be reached, refuses for now, or has just been asked.
    case unavailable(reason: String, wait: Duration = ServiceError.defaultWait)
    /// The keys that verify the user's token cannot be fetched.
    case keysUnavailable(String, wait: Duration)
    /// The key ring does not open the stored token.
    case unreadableToken
    case auditUnavailable

    // MARK: The status page

    case noLogin
    case notOperator
    /// The operator must not look up this user.
    case foreignUser
    case foreignForm
    case foreignPage
    case oldPage
    case noOperators
    case lookupAuditUnavailable

    // MARK: Administration

    case notManager
    case unmanagedUser
    case noUser
    case keptEnded
    /// The account of the record is another connection of the user: this one, if the service may know it.
    case accountConnected(ConnectionID?)
    case userWasDeleted
    case manageAuditUnavailable
    /// `problem` continues a sentence about the grant.
    case notRetried(GrantRetry, problem: String, reason: GrantReason, since: Timestamp)

    /// Makes the error for one that a request failed because of.
    init(causedBy error: any Error) {
        switch error {
        case let error as ServiceError: self = error
        case VendingError.unknownGrant: self = .noGrant
        case VendingError.refused(_, .userDeleted, _): self = .noGrant
        case VendingError.refused(let state, let reason, let since):
            self = .mustAct(state: state, reason: reason, since: since)
        case VendingError.unavailable(let reason): self = .unavailable(reason: reason)
        case VendingError.tooSoon(let wait): self = .unavailable(reason: VendReason.justTried.rawValue, wait: wait)
        case VendingError.unreadable: self = .unreadableToken
        case is CancellationError: self = .unavailable(reason: VendReason.stopping.rawValue)
        default: self = .storeUnavailable
        }
    }

    /// The wait before another try, for errors that might pass.
    var retryAfter: Duration? {
        switch self {
        case .unavailable(_, let wait), .keysUnavailable(_, let wait): wait
        case .mustAct(.suspended, _, _): Self.suspensionWait
        case .storeUnavailable, .noServices, .noOperators, .auditUnavailable, .lookupAuditUnavailable,
            .manageAuditUnavailable:
            Self.defaultWait
        case .refusedByServer(let refusal): refusal.status == 503 ? Self.defaultWait : nil
        default: nil
        }
    }
}

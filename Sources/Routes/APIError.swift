internal import Base
internal import HTTPServer
internal import Scheduler
internal import Storage

/// An error response of a route, in the two forms of its listener.
///
/// The public listener answers as PayPulse does, and under `/api/` as ComprehensionEngine, which has no codes. The
/// internal listener has a form of its own, and at the token endpoint that of OAuth (RFC 6749, section 5.2).
struct APIError: Error, Hashable, Sendable {
    // PayPulse's form, or that of the internal listener.
    let status: Int
    let code: String
    let message: String
    // ComprehensionEngine's form, or that of the token endpoint.
    let otherStatus: Int
    let otherCode: String
    let otherMessage: String
    /// The wait before another try, for statuses that might pass.
    var retryAfter: Duration?
    /// The scopes that the grant lacks.
    var missing: [String] = []
    var reason: String?
    var since: Timestamp?

    /// Makes an error whose forms differ only in what `other` names.
    init(
        _ status: Int,
        _ code: String,
        _ message: String,
        other: (status: Int?, code: String?, message: String?) = (nil, nil, nil)
    ) {
        (self.status, self.code, self.message) = (status, code, message)
        otherStatus = other.status ?? status
        otherCode = other.code ?? code
        otherMessage = other.message ?? message
    }
}

/// The errors of the public listener.
extension APIError {
    static let missingToken = unauthenticated(
        401,
        "INVALID_CREDENTIALS",
        "Authorization with a bearer token is required"
    )
    /// The token, its session or its user is invalid.
    ///
    /// The response does not say which.
    static let invalidToken = unauthenticated(401, "INVALID_TOKEN", "The token is not valid")
    static let expiredToken = unauthenticated(401, "TOKEN_EXPIRED", "The token has expired")
    /// The signature is good, but not for this worker.
    ///
    /// The bearer can read the token, so the response can help to correct the settings.
    static let foreignToken = unauthenticated(
        401,
        "INVALID_TOKEN",
        "The token is of another issuer or for another audience"
    )
    /// The keys that the token's signer publishes cannot be fetched.
    static func keysUnavailable(retryAfter: Duration) -> APIError {
        var error = APIError(503, "DEPENDENCY_FAILURE", "The keys of the app's login cannot be fetched; try again")
        error.retryAfter = retryAfter
        return error
    }
    /// The user was deleted, and the token was issued before.
    static let deletedUser = unauthenticated(404, "USER_NOT_FOUND", "There is no such user")
    /// The backend has disabled the user.
    static let inactiveUser = unauthenticated(401, "INVALID_CREDENTIALS", "The user is not active")
    static let invalidRefreshToken = APIError(401, "INVALID_TOKEN", "Invalid refresh token")
    /// The former backend has signed the user in, and no import has brought the user yet.
    static let notMovedYet = APIError(503, "DEPENDENCY_FAILURE", "The user is not moved yet; try again")

    /// Google's token is invalid, belongs to another app, or its user's address is not verified.
    static let refusedByGoogle = APIError(
        400,
        "INVALID_CREDENTIALS",
        "Google does not accept this access token for this app",
        other: (nil, nil, "Invalid Google access token")
    )
    static let refusedIDToken = APIError(
        400,
        "INVALID_CREDENTIALS",
        "The ID token is not valid for this app, or was used before",
        other: (nil, nil, "Invalid Google ID token")
    )
    static let googleUnreachable = APIError(502, "DEPENDENCY_FAILURE", "Google cannot be reached; try again")

    // No error of a body contains parts of the body.
    static let undeclaredBody = APIError(411, "INVALID_JSON", "A body is required, and its Content-Length")
    static let unsupportedMediaType = APIError(
        415,
        "INVALID_JSON",
        "The body must be application/json or application/x-www-form-urlencoded",
        other: (nil, nil, "The body must be application/json")
    )
    static let unreadableBody = APIError(400, "INVALID_JSON", "The body is not a JSON object")

    static func missingField(_ name: String) -> APIError { APIError(400, "MISSING_FIELDS", "\(name) is required") }

    /// `requirement` is for example "a number of seconds".
    static func invalidField(_ name: String, mustBe requirement: String) -> APIError {
        APIError(400, "INVALID_JSON", "\(name) must be \(requirement)")
    }

    static let unknownPath = APIError(404, "NOT_FOUND", "There is no such route", other: (nil, nil, "Not Found"))
    static let wrongMethod = APIError(
        405,
        "METHOD_NOT_ALLOWED",
        "The route does not accept this method",
        other: (nil, nil, "Method Not Allowed")
    )
    static let internalError = APIError(
        500,
        "INTERNAL_SERVER_ERROR",
        "The server could not do this; try again",
        other: (nil, nil, "Internal Server Error")
    )

    /// PayPulse does not have a code for this limit.
    ///
    /// It protects Google and the store, so their code fits best.
    static func tooManyRequests(retryAfter: Duration) -> APIError {
        var error = APIError(429, "DEPENDENCY_FAILURE", "Too many requests; try again later")
        error.retryAfter = retryAfter
        return error
    }

    /// Makes the error of a request to the public listener that the server itself refuses.
    init(publicly refusal: RequestRefusal) {
        let text = refusal.reason.prefix(1).uppercased() + refusal.reason.dropFirst()
        self.init(refusal.status, refusal.status == 503 ? "DEPENDENCY_FAILURE" : "INVALID_JSON", text)
    }

    /// Makes the error for another one that a public route can show, or `nil` for an internal one.
    init?(publicly error: any Error) {
        switch error {
        case let error as APIError: self = error
        case is VendingError: self = .googleUnreachable
        default: return nil
        }
    }

    /// An app of ComprehensionEngine reacts to every refusal in the same way: it refreshes once, then signs out.
    private static func unauthenticated(_ status: Int, _ code: String, _ message: String) -> APIError {
        APIError(status, code, message, other: (401, nil, "Could not validate credentials"))
    }

    var payPulseResponse: ServerResponse {
        .object(status: status, headers: publicHeaders(status)) { line in
            line.object("error") { error in
                error.field("code", code)
                error.field("message", message)
            }
        }
    }

    var comprehensionResponse: ServerResponse {
        let wait = otherStatus == 503 && retryAfter == nil ? [Duration.seconds(60).retryAfter] : []
        return .object(status: otherStatus, headers: publicHeaders(otherStatus) + wait) { line in
            line.field("detail", otherMessage)
        }
    }

    private func publicHeaders(_ status: Int) -> [ServerRequest.Field] {
        var headers: [ServerRequest.Field] = []
        if status == 401 { headers.append(("WWW-Authenticate", "Bearer")) }
        // So that a proxy can send this request, and no other one, to the former backend.
        if self == .notMovedYet { headers.append(("Refresh-Worker-User", "not-moved")) }
        if let retryAfter { headers.append(retryAfter.retryAfter) }
        return headers
    }
}

/// The errors of the internal listener.
///
/// OAuth libraries take `invalid_grant` to mean that the user must sign in again, so nothing else has this code.
/// Everything that might pass is 503.
extension APIError {
    /// The wait before the next try if the cause does not determine one: shorter than most outages, and long enough to
    /// prevent a busy loop.
    private static let defaultWait: Duration = .seconds(5)
    /// The wait after which a service asks again about a suspended grant, which is probed once a day.
    private static let suspensionWait: Duration = .seconds(3600)

    static let unsupportedGrantType = APIError(
        400,
        "unsupported_grant_type",
        "there are the grant types refresh_token and token-exchange"
    )
    /// Token exchange for a named target: Google's tokens cannot be limited to one.
    static let invalidTarget = APIError(400, "invalid_target", "a token cannot be limited to an audience or a resource")
    static let unauthorized = APIError(
        401,
        "unauthorized",
        "a known credential is needed: Authorization: Bearer",
        other: (nil, "invalid_client", "the client_id must be a service, and the client_secret its credential")
    )
    static let forbiddenUser = forbidden("this service cannot have tokens of this user", oauth: "unauthorized_client")
    /// The service names a user whose own token it must present.
    static let absentUser = forbidden(
        "this service gets tokens only for the subject_token of a user who is present",
        oauth: "unauthorized_client"
    )
    /// The service only looks up users.
    static let forbiddenTokens = forbidden(
        "this service cannot have tokens: its entry in the services file has no scopes",
        oauth: "unauthorized_client"
    )
    /// The service must name scopes, and named none.
    static let unnamedScopes = forbidden("this service must name the scopes that it needs", oauth: "invalid_scope")
    static let forbiddenScopes = forbidden(
        "this service cannot have all of the requested scopes",
        oauth: "invalid_scope"
    )
    static let noGrant = APIError(
        404,
        "not_found",
        "this user does not have a grant",
        other: (400, "invalid_grant", nil)
    )
    /// The key ring does not open the stored token.
    static let unreadableToken = APIError(
        500,
        "token_unreadable",
        "the stored token cannot be opened with the worker's key ring",
        other: (nil, "server_error", nil)
    )
    static let storeUnavailable = temporary("store_unavailable", "the database cannot be read now")
    static let auditUnavailable = temporary(
        "audit_unavailable",
        "the audit cannot be written now, and tokens are not vended without it"
    )
    /// The worker has no services file.
    ///
    /// It is an error of the server: 401 would blame the service's credential.
    static let noServices = temporary("no_services", "this worker vends no tokens: it has no --services-file")

    /// `code` is that of the token endpoint, which has no 403.
    static func forbidden(_ message: String, oauth code: String? = nil) -> APIError {
        APIError(403, "forbidden", message, other: (code.map { _ in 400 }, code, nil))
    }

    static func invalidRequest(_ problem: String) -> APIError { APIError(400, "invalid_request", problem) }

    static func missingScopes(_ scopes: [String]) -> APIError {
        let message = "the user has not granted all of the requested scopes"
        let list = scopes.joined(separator: " ")
        var error = APIError(403, "missing_scopes", message, other: (400, "invalid_scope", "\(message): \(list)"))
        error.missing = scopes
        return error
    }

    /// The user, or an administrator, must act first.
    static func mustAct(state: GrantState, reason: GrantReason, since: Timestamp) -> APIError {
        let message =
            switch state {
            case .suspended: "an administrator or a policy blocks the account"
            case .reauthRequired: "the user must sign in with Google again"
            case .active, .retrying, .disconnected: "the account is disconnected"
            }
        let isSuspended = state == .suspended
        let (status, code) = isSuspended ? (503, "temporarily_unavailable") : (400, "invalid_grant")
        let text = "\(message): \(reason.rawValue) since \(since.iso8601Seconds)"
        var error = APIError(409, state.rawValue, message, other: (status, code, text))
        error.retryAfter = isSuspended ? suspensionWait : nil
        error.reason = reason.rawValue
        error.since = since
        return error
    }

    /// No valid token is stored, and Google cannot be reached, refuses for now, or has just been asked.
    static func unavailable(reason: String, wait: Duration = defaultWait) -> APIError {
        let message = "no fresh token can be had now"
        var error = temporary("unavailable", message, otherMessage: "\(message): \(reason)")
        error.retryAfter = wait
        error.reason = reason
        return error
    }

    static func temporary(_ code: String, _ message: String, otherMessage: String? = nil) -> APIError {
        var error = APIError(503, code, message, other: (nil, "temporarily_unavailable", otherMessage))
        error.retryAfter = defaultWait
        return error
    }

    /// Makes the error of a request to the internal listener that the server itself refuses.
    init(internally refusal: RequestRefusal) {
        self =
            refusal.status == 503
            ? .temporary("unavailable", refusal.reason)
            : APIError(refusal.status, "invalid_request", refusal.reason)
    }

    /// Makes the error for one that a token was not vended because of.
    init(internally error: any Error) {
        switch error {
        case let error as APIError: self = error
        case VendingError.unknownUser: self = .noGrant
        case VendingError.refused(let state, let reason, let since):
            self = reason == .userDeleted ? .noGrant : .mustAct(state: state, reason: reason, since: since)
        case VendingError.unavailable(let reason): self = .unavailable(reason: reason)
        case VendingError.tooSoon(let wait): self = .unavailable(reason: VendReason.justTried.rawValue, wait: wait)
        case VendingError.unreadable: self = .unreadableToken
        case is CancellationError: self = .unavailable(reason: VendReason.stopping.rawValue)
        default: self = .storeUnavailable
        }
    }

    static let unknownInternalPath = APIError(404, "unknown_path", "there is no such route")
    static let wrongInternalMethod = APIError(
        405,
        "method_not_allowed",
        "the route has other methods",
        other: (nil, "invalid_request", "the token endpoint has only POST")
    )
    static let metricsOff = APIError(404, "metrics_off", "metrics are served over TLS only with --internal-metrics")

    /// The headers that RFC 6749 requires of every response of the token endpoint.
    static let oauthHeaders: [ServerRequest.Field] = [ServerResponse.noStore, ("Pragma", "no-cache")]

    /// The response of the internal listener.
    var response: ServerResponse {
        let challenge: [ServerRequest.Field] = status == 401 ? [("WWW-Authenticate", "Bearer")] : []
        return .object(status: status, headers: challenge + internalHeaders(status)) { line in
            line.field("error", code)
            line.field("message", message)
            if !missing.isEmpty { line.strings("missing", missing) }
            if let reason { line.field("reason", reason) }
            if let since { line.field("since", since.iso8601Seconds) }
        }
    }

    /// The response of the token endpoint.
    var oauthResponse: ServerResponse {
        let challenge: [ServerRequest.Field] =
            otherStatus == 401 ? [("WWW-Authenticate", #"Basic realm="refresh-worker""#)] : []
        let headers = Self.oauthHeaders + challenge + internalHeaders(otherStatus).dropFirst()
        return .object(status: otherStatus, headers: headers) { line in
            line.field("error", otherCode)
            line.field("error_description", otherMessage)
        }
    }

    private func internalHeaders(_ status: Int) -> [ServerRequest.Field] {
        [ServerResponse.noStore] + (status == 503 ? (retryAfter.map { [$0.retryAfter] } ?? []) : [])
    }
}

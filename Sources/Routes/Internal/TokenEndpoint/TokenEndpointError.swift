import Base
import Crypto
import HTTPServer
import Scheduler
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

/// The responses of the token endpoint (RFC 6749, section 5.1; RFC 8693, section 2.2.1).
enum TokenEndpointResponse {
    /// The headers that RFC 6749 requires of every response.
    static let headers: [ServerRequest.Field] = [ServerResponse.noStore, ("Pragma", "no-cache")]

    /// Returns the response with a token, whose scope is every scope that the user has granted.
    static func success(
        _ token: VendedToken,
        to grantType: TokenEndpointRequest.GrantType?,
        at now: Timestamp
    ) -> ServerResponse {
        .object(headers: headers) { line in
            line.field("access_token", token.accessToken.reveal())
            if grantType == .tokenExchange { line.field("issued_token_type", TokenEndpointRequest.accessTokenType) }
            line.field("token_type", token.type)
            line.field("expires_in", token.secondsLeft(at: now))
            if !token.scope.isEmpty { line.field("scope", token.scope) }
        }
    }
}

/// The token endpoint for OAuth libraries: the tokens of ``TokenVendingHandler``, requested in a standard form.
extension TokenVendingHandler {
    static let tokenEndpointPath = "/oauth2/token"

    /// Returns a token that lives long enough for a library, or an error that it understands.
    func tokenEndpointResponse(to request: ServerRequest) async -> ServerResponse {
        let start = time.sinceBoot
        let form: TokenEndpointForm
        let login: ServiceLogin?
        do throws(VendingError) {
            form = try TokenEndpointForm(request)
            login = try ServiceLogin(request, form)
        } catch {
            return TokenEndpointError(refused(error, since: start)).response
        }
        guard let login, let service = services.service(named: login.name, presenting: login.credential) else {
            return TokenEndpointError(refusedStranger(request, since: start)).response
        }
        var grantType: TokenEndpointRequest.GrantType?
        let result = await vend(to: service, forced: false, since: start) { audit in
            let parsed = try TokenEndpointRequest(form, from: service)
            grantType = parsed.grantType
            do {
                return try await token(of: parsed.userID, parsed.demands, for: service, &audit)
            } catch {
                throw try await orDoubt(VendingError(error), about: parsed.userID)
            }
        }
        do throws(VendingError) {
            return TokenEndpointResponse.success(try result.get(), to: grantType, at: time.now)
        } catch {
            return TokenEndpointError(error).response
        }
    }

    /// Returns the error for now, instead of the end of a grant that the worker itself can still undo.
    ///
    /// Libraries delete the connection after `invalid_grant`, so it must be final.
    private func orDoubt(_ error: VendingError, about userID: String) async throws -> VendingError {
        guard case .mustAct(.disconnected, _, _) = error,
            let wait = try await provider.recallTimeLeft(ofUser: userID)
        else { return error }
        return .unavailable(reason: GrantReason.invalidGrantUnconfirmed.rawValue, wait: wait)
    }
}

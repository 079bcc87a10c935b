internal import Base
internal import HTTPServer
internal import Storage

/// The errors of the token endpoint, as OAuth libraries read them (RFC 6749, section 5.2):
///
///     {"error": "invalid_grant", "error_description": "the account is disconnected: invalid_grant since …"}
///
/// Libraries take `invalid_grant` to mean that the user must sign in again, so nothing else has this code. There is no
/// 403. Where libraries do not need other words, they are those of the internal routes.
struct OAuthErrorForm: Hashable, Sendable {
    let status: Int
    let code: String
    let description: String

    private init(_ status: Int, code: String, description: String) {
        self.status = status
        self.code = code
        self.description = description
    }

    init(_ error: ServiceError) {
        let form = InternalErrorForm(error)
        self =
            switch error {
            case .unauthorized:
                Self(
                    401,
                    code: "invalid_client",
                    description: "the client_id must be a service, and the client_secret its credential"
                )
            case .wrongMethod:
                Self(405, code: "invalid_request", description: "the token endpoint has only POST")
            case .forbiddenUser, .forbiddenConnection, .absentUser, .forbiddenTokens:
                Self(400, code: "unauthorized_client", description: form.message)
            case .unnamedScopes, .forbiddenScopes:
                Self(400, code: "invalid_scope", description: form.message)
            case .missingScopes(let scopes):
                Self(
                    400,
                    code: "invalid_scope",
                    description: "\(form.message): \(scopes.joined(separator: " "))"
                )
            case .noGrant:
                Self(400, code: "invalid_grant", description: form.message)
            case .mustAct(let state, let reason, let since):
                Self(
                    state == .suspended ? 503 : 400,
                    code: state == .suspended ? "temporarily_unavailable" : "invalid_grant",
                    description: "\(form.message): \(reason.rawValue) since \(since.iso8601Seconds)"
                )
            case .unavailable(let reason, _):
                Self(503, code: "temporarily_unavailable", description: "\(form.message): \(reason)")
            case .unreadableToken:
                Self(500, code: "server_error", description: form.message)
            case .storeUnavailable, .noServices, .keysUnavailable, .auditUnavailable:
                Self(503, code: "temporarily_unavailable", description: form.message)
            case .refusedByServer(let refusal) where refusal.status == 503:
                Self(503, code: "temporarily_unavailable", description: form.message)
            case .refusedByServer, .invalidRequest, .unsupportedGrantType, .invalidTarget:
                Self(form.status, code: form.code, description: form.message)
            case .unknownPath, .metricsOff, .noLogin, .notOperator, .foreignUser, .foreignForm, .foreignPage, .oldPage,
                .noOperators, .lookupAuditUnavailable, .notManager, .unmanagedUser, .noUser, .keptEnded,
                .accountConnected,
                .userWasDeleted, .manageAuditUnavailable, .notRetried:
                // The token endpoint does not have these.
                Self(form.status, code: form.code, description: form.message)
            }
    }
}

extension ServiceError {
    /// The headers that RFC 6749 requires of every response of the token endpoint.
    static let oauthHeaders: [ServerRequest.Field] = [ServerResponse.noStore, ("Pragma", "no-cache")]

    /// The response of the token endpoint.
    var oauthResponse: ServerResponse {
        let form = OAuthErrorForm(self)
        var headers = Self.oauthHeaders
        if form.status == 401 { headers.append(("WWW-Authenticate", #"Basic realm="refresh-worker""#)) }
        if form.status == 503, let retryAfter { headers.append(retryAfter.retryAfter) }
        return .object(status: form.status, headers: headers) { line in
            line.field("error", form.code)
            line.field("error_description", form.description)
        }
    }
}

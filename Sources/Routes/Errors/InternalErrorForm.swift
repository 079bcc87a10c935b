internal import Base
internal import HTTPServer
internal import Storage

/// The errors of the internal routes:
///
///     {"error": "disconnected", "message": "the account is disconnected", "reason": "invalid_grant", "since": "…"}
///
/// Everything that might pass is 503.
struct InternalErrorForm: Hashable, Sendable {
    let status: Int
    /// It is also the outcome in the audit.
    let code: String
    let message: String

    private init(_ status: Int, code: String, message: String) {
        self.status = status
        self.code = code
        self.message = message
    }

    private static func forbidden(_ message: String) -> Self { Self(403, code: "forbidden", message: message) }

    private static func temporary(_ code: String, message: String) -> Self { Self(503, code: code, message: message) }

    init(_ error: ServiceError) {
        self =
            switch error {
            // Any request.
            case .unauthorized:
                Self(401, code: "unauthorized", message: "a known credential is needed: Authorization: Bearer")
            case .invalidRequest(let problem):
                Self(400, code: "invalid_request", message: problem)
            case .storeUnavailable:
                .temporary("store_unavailable", message: "the database cannot be read now")
            case .noServices:
                .temporary("no_services", message: "this worker vends no tokens: it has no --services-file")
            case .unknownPath:
                Self(404, code: "unknown_path", message: "there is no such route")
            case .wrongMethod:
                Self(405, code: "method_not_allowed", message: "the route has other methods")
            case .metricsOff:
                Self(404, code: "metrics_off", message: "metrics are served over TLS only with --internal-metrics")
            case .refusedByServer(let refusal) where refusal.status == 503:
                .temporary("unavailable", message: refusal.reason)
            case .refusedByServer(let refusal):
                Self(refusal.status, code: "invalid_request", message: refusal.reason)

            // A request for a token.
            case .unsupportedGrantType:
                Self(
                    400,
                    code: "unsupported_grant_type",
                    message: "there are the grant types refresh_token and token-exchange"
                )
            case .invalidTarget:
                Self(
                    400,
                    code: "invalid_target",
                    message: "a token cannot be limited to an audience or a resource"
                )
            case .forbiddenUser:
                .forbidden("this service cannot have tokens of this user")
            case .forbiddenConnection:
                .forbidden(
                    "this service cannot have this connection: see its entry in the services file"
                )
            case .absentUser:
                .forbidden("this service gets tokens only for the subject_token of a user who is present")
            case .forbiddenTokens:
                .forbidden("this service cannot have tokens: its entry in the services file has no scopes")
            case .unnamedScopes:
                .forbidden("this service must name the scopes that it needs")
            case .forbiddenScopes:
                .forbidden("this service cannot have all of the requested scopes")
            case .missingScopes:
                Self(403, code: "missing_scopes", message: "the user has not granted all of the requested scopes")
            case .noGrant:
                Self(404, code: "not_found", message: "this user does not have a grant, or not with this connection")
            case .mustAct(let state, _, _):
                Self(409, code: state.rawValue, message: Self.neededAct(in: state))
            case .unavailable:
                .temporary("unavailable", message: "no fresh token can be had now")
            case .keysUnavailable(let problem, _):
                .temporary("keys_unavailable", message: problem)
            case .unreadableToken:
                Self(
                    500,
                    code: "token_unreadable",
                    message: "the stored token cannot be opened with the worker's key ring"
                )
            case .auditUnavailable:
                .temporary(
                    "audit_unavailable",
                    message: "the audit cannot be written now, and tokens are not vended without it"
                )

            // The status page.
            case .noLogin:
                Self(401, code: "unauthorized", message: "the name and the credential of a service are needed")
            case .notOperator:
                .forbidden(
                    #"this service cannot look up users: its entry in the services file needs "operator": true"#
                )
            case .foreignUser:
                .forbidden(#"this service cannot look up this user: see "users" of its entry in the services file"#)
            case .foreignForm:
                .forbidden(
                    #"""
                    only a button of this page, for an operator with "manage": true, changes a grant: open the user again
                    """#
                )
            case .foreignPage:
                .forbidden("a page of another site cannot look up users: open the status page itself")
            case .oldPage:
                Self(
                    409,
                    code: "changed",
                    message: """
                        the grant has changed since the page was loaded, and stays as it is: open the user again
                        """
                )
            case .noOperators:
                .temporary(
                    "no_services",
                    message: "this worker cannot look up users: it has no --services-file, which lists the operators"
                )
            case .lookupAuditUnavailable:
                .temporary(
                    "audit_unavailable",
                    message: "the audit cannot be written now, and users are not shown without it"
                )

            // Administration.
            case .notManager:
                .forbidden(
                    #"this service cannot manage grants: its entry in the services file needs "manage": true"#
                )
            case .unmanagedUser:
                .forbidden(#"this service cannot manage this user: see "users" of its entry in the services file"#)
            case .noUser:
                Self(404, code: "not_found", message: "no such user is stored, or the user was deleted")
            case .keptEnded:
                Self(
                    409,
                    code: "ended",
                    message: """
                        the user ended or changed the stored grant: kept, because the record does not have a newer \
                        refresh token
                        """
                )
            case .accountConnected(let connection?):
                Self(
                    409,
                    code: "account_connected",
                    message: "the account of the record is the connection \(connection) of this user: not stored"
                )
            case .accountConnected(nil):
                Self(
                    409,
                    code: "account_connected",
                    message: "the account of the record is another connection of this user: not stored"
                )
            case .userWasDeleted:
                Self(
                    409,
                    code: "user_deleted",
                    message: """
                        the user was deleted: not stored until every token that names the user has expired
                        """
                )
            case .manageAuditUnavailable:
                .temporary(
                    "audit_unavailable",
                    message: "the audit cannot be written now, and grants are not managed without it"
                )
            case .notRetried(let result, let problem, _, _):
                Self(409, code: result.rawValue, message: "the grant \(problem)")
            }
    }

    private static func neededAct(in state: GrantState) -> String {
        switch state {
        case .suspended: "an administrator or a policy blocks the account"
        case .reauthRequired: "the user must sign in with Google again"
        case .active, .retrying, .disconnected: "the account is disconnected"
        }
    }
}

extension ServiceError {
    /// The code that services and the audit get.
    var code: String { InternalErrorForm(self).code }

    /// The response of the internal routes.
    var response: ServerResponse {
        let form = InternalErrorForm(self)
        var headers: [ServerRequest.Field] = []
        if form.status == 401 { headers.append(("WWW-Authenticate", "Bearer")) }
        headers.append(ServerResponse.noStore)
        if form.status == 503, let retryAfter { headers.append(retryAfter.retryAfter) }
        return .object(status: form.status, headers: headers) { line in
            line.field("error", form.code)
            line.field("message", form.message)
            writeDetails(into: &line)
        }
    }

    private func writeDetails(into line: inout JSONLine) {
        switch self {
        case .missingScopes(let scopes):
            line.strings("missing", scopes)
        case .mustAct(_, let reason, let since), .notRetried(_, _, let reason, let since):
            line.field("reason", reason.rawValue)
            line.field("since", since.iso8601Seconds)
        case .unavailable(let reason, _):
            line.field("reason", reason)
        default:
            break
        }
    }
}

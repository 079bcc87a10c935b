import Base
import Storage
import Testing

@testable import HTTPServer
@testable import Routes

/// An error, and the responses to it on the internal routes, at the token endpoint, and as a page.
private struct Example: CustomTestStringConvertible, Sendable {
    let error: ServiceError
    let response: String
    /// `nil` for an error that the token endpoint does not have.
    var oauth: String?
    /// `nil` for an error that the status page does not have.
    var page: String?

    var testDescription: String { response }
}

@Suite("An error of the internal routes")
struct ServiceErrorTests {
    @Test("has a form on its routes, one at the token endpoint, and one on the status page", arguments: examples)
    private func forms(_ example: Example) {
        #expect(example.error.response.written == example.response)
        if let oauth = example.oauth { #expect(example.error.oauthResponse.written == oauth) }
        if let page = example.page { #expect(example.error.pageResponse.writtenAsPage == page) }
    }

    private static let at = Timestamp(milliseconds: 1_750_000_000_000)

    private static let examples: [Example] = [
        Example(
            error: .unauthorized,
            response: #"""
                401
                WWW-Authenticate: Bearer
                Cache-Control: no-store
                {"error":"unauthorized","message":"a known credential is needed: Authorization: Bearer"}
                """#,
            oauth: #"""
                401
                Cache-Control: no-store
                Pragma: no-cache
                WWW-Authenticate: Basic realm="refresh-worker"
                {"error":"invalid_client","error_description":"the client_id must be a service, and the client_secret its credential"}
                """#
        ),
        Example(
            error: .unsupportedGrantType,
            response: #"""
                400
                Cache-Control: no-store
                {"error":"unsupported_grant_type","message":"there are the grant types refresh_token and token-exchange"}
                """#,
            oauth: #"""
                400
                Cache-Control: no-store
                Pragma: no-cache
                {"error":"unsupported_grant_type","error_description":"there are the grant types refresh_token and token-exchange"}
                """#
        ),
        Example(
            error: .invalidTarget,
            response: #"""
                400
                Cache-Control: no-store
                {"error":"invalid_target","message":"a token cannot be limited to an audience or a resource"}
                """#,
            oauth: #"""
                400
                Cache-Control: no-store
                Pragma: no-cache
                {"error":"invalid_target","error_description":"a token cannot be limited to an audience or a resource"}
                """#
        ),
        Example(
            error: .invalidRequest("min_ttl must be given once"),
            response: #"""
                400
                Cache-Control: no-store
                {"error":"invalid_request","message":"min_ttl must be given once"}
                """#,
            oauth: #"""
                400
                Cache-Control: no-store
                Pragma: no-cache
                {"error":"invalid_request","error_description":"min_ttl must be given once"}
                """#,
            page: #"""
                400
                min_ttl must be given once
                """#
        ),
        Example(
            error: .forbiddenUser,
            response: #"""
                403
                Cache-Control: no-store
                {"error":"forbidden","message":"this service cannot have tokens of this user"}
                """#,
            oauth: #"""
                400
                Cache-Control: no-store
                Pragma: no-cache
                {"error":"unauthorized_client","error_description":"this service cannot have tokens of this user"}
                """#
        ),
        Example(
            error: .absentUser,
            response: #"""
                403
                Cache-Control: no-store
                {"error":"forbidden","message":"this service gets tokens only for the subject_token of a user who is present"}
                """#,
            oauth: #"""
                400
                Cache-Control: no-store
                Pragma: no-cache
                {"error":"unauthorized_client","error_description":"this service gets tokens only for the subject_token of a user who is present"}
                """#
        ),
        Example(
            error: .forbiddenTokens,
            response: #"""
                403
                Cache-Control: no-store
                {"error":"forbidden","message":"this service cannot have tokens: its entry in the services file has no scopes"}
                """#,
            oauth: #"""
                400
                Cache-Control: no-store
                Pragma: no-cache
                {"error":"unauthorized_client","error_description":"this service cannot have tokens: its entry in the services file has no scopes"}
                """#
        ),
        Example(
            error: .unnamedScopes,
            response: #"""
                403
                Cache-Control: no-store
                {"error":"forbidden","message":"this service must name the scopes that it needs"}
                """#,
            oauth: #"""
                400
                Cache-Control: no-store
                Pragma: no-cache
                {"error":"invalid_scope","error_description":"this service must name the scopes that it needs"}
                """#
        ),
        Example(
            error: .forbiddenScopes,
            response: #"""
                403
                Cache-Control: no-store
                {"error":"forbidden","message":"this service cannot have all of the requested scopes"}
                """#,
            oauth: #"""
                400
                Cache-Control: no-store
                Pragma: no-cache
                {"error":"invalid_scope","error_description":"this service cannot have all of the requested scopes"}
                """#
        ),
        Example(
            error: .missingScopes(["email", "openid"]),
            response: #"""
                403
                Cache-Control: no-store
                {"error":"missing_scopes","message":"the user has not granted all of the requested scopes","missing":["email","openid"]}
                """#,
            oauth: #"""
                400
                Cache-Control: no-store
                Pragma: no-cache
                {"error":"invalid_scope","error_description":"the user has not granted all of the requested scopes: email openid"}
                """#
        ),
        Example(
            error: .noGrant,
            response: #"""
                404
                Cache-Control: no-store
                {"error":"not_found","message":"this user does not have a grant, or not with this connection"}
                """#,
            oauth: #"""
                400
                Cache-Control: no-store
                Pragma: no-cache
                {"error":"invalid_grant","error_description":"this user does not have a grant, or not with this connection"}
                """#,
            page: #"""
                404
                this user does not have a grant, or not with this connection
                """#
        ),
        Example(
            error: .mustAct(state: .disconnected, reason: .invalidGrant, since: at),
            response: #"""
                409
                Cache-Control: no-store
                {"error":"disconnected","message":"the account is disconnected","reason":"invalid_grant","since":"2025-06-15T15:06:40Z"}
                """#,
            oauth: #"""
                400
                Cache-Control: no-store
                Pragma: no-cache
                {"error":"invalid_grant","error_description":"the account is disconnected: invalid_grant since 2025-06-15T15:06:40Z"}
                """#
        ),
        Example(
            error: .mustAct(state: .reauthRequired, reason: .noRefreshToken, since: at),
            response: #"""
                409
                Cache-Control: no-store
                {"error":"reauth_required","message":"the user must sign in with Google again","reason":"no_refresh_token","since":"2025-06-15T15:06:40Z"}
                """#,
            oauth: #"""
                400
                Cache-Control: no-store
                Pragma: no-cache
                {"error":"invalid_grant","error_description":"the user must sign in with Google again: no_refresh_token since 2025-06-15T15:06:40Z"}
                """#
        ),
        Example(
            error: .mustAct(state: .suspended, reason: .accountDisabled, since: at),
            response: #"""
                409
                Cache-Control: no-store
                {"error":"suspended","message":"an administrator or a policy blocks the account","reason":"account_disabled","since":"2025-06-15T15:06:40Z"}
                """#,
            oauth: #"""
                503
                Cache-Control: no-store
                Pragma: no-cache
                Retry-After: 3600
                {"error":"temporarily_unavailable","error_description":"an administrator or a policy blocks the account: account_disabled since 2025-06-15T15:06:40Z"}
                """#
        ),
        Example(
            error: .unavailable(reason: "timeout"),
            response: #"""
                503
                Cache-Control: no-store
                Retry-After: 5
                {"error":"unavailable","message":"no fresh token can be had now","reason":"timeout"}
                """#,
            oauth: #"""
                503
                Cache-Control: no-store
                Pragma: no-cache
                Retry-After: 5
                {"error":"temporarily_unavailable","error_description":"no fresh token can be had now: timeout"}
                """#
        ),
        Example(
            error: .unavailable(reason: "just_tried", wait: .milliseconds(9500)),
            response: #"""
                503
                Cache-Control: no-store
                Retry-After: 10
                {"error":"unavailable","message":"no fresh token can be had now","reason":"just_tried"}
                """#,
            oauth: #"""
                503
                Cache-Control: no-store
                Pragma: no-cache
                Retry-After: 10
                {"error":"temporarily_unavailable","error_description":"no fresh token can be had now: just_tried"}
                """#
        ),
        Example(
            error: .keysUnavailable("The keys cannot be fetched", wait: .seconds(7)),
            response: #"""
                503
                Cache-Control: no-store
                Retry-After: 7
                {"error":"keys_unavailable","message":"The keys cannot be fetched"}
                """#,
            oauth: #"""
                503
                Cache-Control: no-store
                Pragma: no-cache
                Retry-After: 7
                {"error":"temporarily_unavailable","error_description":"The keys cannot be fetched"}
                """#
        ),
        Example(
            error: .notRetried(.ended, problem: "is disconnected", reason: .invalidGrant, since: at),
            response: #"""
                409
                Cache-Control: no-store
                {"error":"ended","message":"the grant is disconnected","reason":"invalid_grant","since":"2025-06-15T15:06:40Z"}
                """#
        ),
        Example(
            error: .unreadableToken,
            response: #"""
                500
                Cache-Control: no-store
                {"error":"token_unreadable","message":"the stored token cannot be opened with the worker's key ring"}
                """#,
            oauth: #"""
                500
                Cache-Control: no-store
                Pragma: no-cache
                {"error":"server_error","error_description":"the stored token cannot be opened with the worker's key ring"}
                """#
        ),
        Example(
            error: .storeUnavailable,
            response: #"""
                503
                Cache-Control: no-store
                Retry-After: 5
                {"error":"store_unavailable","message":"the database cannot be read now"}
                """#,
            oauth: #"""
                503
                Cache-Control: no-store
                Pragma: no-cache
                Retry-After: 5
                {"error":"temporarily_unavailable","error_description":"the database cannot be read now"}
                """#,
            page: #"""
                503
                Retry-After: 5
                the database cannot be read now
                """#
        ),
        Example(
            error: .auditUnavailable,
            response: #"""
                503
                Cache-Control: no-store
                Retry-After: 5
                {"error":"audit_unavailable","message":"the audit cannot be written now, and tokens are not vended without it"}
                """#,
            oauth: #"""
                503
                Cache-Control: no-store
                Pragma: no-cache
                Retry-After: 5
                {"error":"temporarily_unavailable","error_description":"the audit cannot be written now, and tokens are not vended without it"}
                """#
        ),
        Example(
            error: .noServices,
            response: #"""
                503
                Cache-Control: no-store
                Retry-After: 5
                {"error":"no_services","message":"this worker vends no tokens: it has no --services-file"}
                """#,
            oauth: #"""
                503
                Cache-Control: no-store
                Pragma: no-cache
                Retry-After: 5
                {"error":"temporarily_unavailable","error_description":"this worker vends no tokens: it has no --services-file"}
                """#
        ),
        Example(
            error: .unknownPath,
            response: #"""
                404
                Cache-Control: no-store
                {"error":"unknown_path","message":"there is no such route"}
                """#
        ),
        Example(
            error: .wrongMethod,
            response: #"""
                405
                Cache-Control: no-store
                {"error":"method_not_allowed","message":"the route has other methods"}
                """#,
            oauth: #"""
                405
                Cache-Control: no-store
                Pragma: no-cache
                {"error":"invalid_request","error_description":"the token endpoint has only POST"}
                """#
        ),
        Example(
            error: .metricsOff,
            response: #"""
                404
                Cache-Control: no-store
                {"error":"metrics_off","message":"metrics are served over TLS only with --internal-metrics"}
                """#
        ),
        Example(
            error: .refusedByServer(.bodyTooLarge),
            response: #"""
                413
                Cache-Control: no-store
                {"error":"invalid_request","message":"the body is too large"}
                """#,
            oauth: #"""
                413
                Cache-Control: no-store
                Pragma: no-cache
                {"error":"invalid_request","error_description":"the body is too large"}
                """#
        ),
        Example(
            error: .refusedByServer(.outOfMemory),
            response: #"""
                503
                Cache-Control: no-store
                Retry-After: 5
                {"error":"unavailable","message":"too many requests at once, try again later"}
                """#,
            oauth: #"""
                503
                Cache-Control: no-store
                Pragma: no-cache
                Retry-After: 5
                {"error":"temporarily_unavailable","error_description":"too many requests at once, try again later"}
                """#
        ),
        Example(
            error: .noLogin,
            response: #"""
                401
                WWW-Authenticate: Bearer
                Cache-Control: no-store
                {"error":"unauthorized","message":"the name and the credential of a service are needed"}
                """#,
            page: #"""
                401
                WWW-Authenticate: Basic realm="refresh-worker", charset="UTF-8"
                the name and the credential of a service are needed
                """#
        ),
        Example(
            error: .notOperator,
            response: #"""
                403
                Cache-Control: no-store
                {"error":"forbidden","message":"this service cannot look up users: its entry in the services file needs \"operator\": true"}
                """#,
            page: #"""
                403
                this service cannot look up users: its entry in the services file needs "operator": true
                """#
        ),
        Example(
            error: .foreignUser,
            response: #"""
                403
                Cache-Control: no-store
                {"error":"forbidden","message":"this service cannot look up this user: see \"users\" of its entry in the services file"}
                """#,
            page: #"""
                403
                this service cannot look up this user: see "users" of its entry in the services file
                """#
        ),
        Example(
            error: .foreignForm,
            response: #"""
                403
                Cache-Control: no-store
                {"error":"forbidden","message":"only a button of this page, for an operator with \"manage\": true, changes a grant: open the user again"}
                """#,
            page: #"""
                403
                only a button of this page, for an operator with "manage": true, changes a grant: open the user again
                """#
        ),
        Example(
            error: .foreignPage,
            response: #"""
                403
                Cache-Control: no-store
                {"error":"forbidden","message":"a page of another site cannot look up users: open the status page itself"}
                """#,
            page: #"""
                403
                a page of another site cannot look up users: open the status page itself
                """#
        ),
        Example(
            error: .oldPage,
            response: #"""
                409
                Cache-Control: no-store
                {"error":"changed","message":"the grant has changed since the page was loaded, and stays as it is: open the user again"}
                """#,
            page: #"""
                409
                the grant has changed since the page was loaded, and stays as it is: open the user again
                """#
        ),
        Example(
            error: .noOperators,
            response: #"""
                503
                Cache-Control: no-store
                Retry-After: 5
                {"error":"no_services","message":"this worker cannot look up users: it has no --services-file, which lists the operators"}
                """#,
            page: #"""
                503
                Retry-After: 5
                this worker cannot look up users: it has no --services-file, which lists the operators
                """#
        ),
        Example(
            error: .lookupAuditUnavailable,
            response: #"""
                503
                Cache-Control: no-store
                Retry-After: 5
                {"error":"audit_unavailable","message":"the audit cannot be written now, and users are not shown without it"}
                """#,
            page: #"""
                503
                Retry-After: 5
                the audit cannot be written now, and users are not shown without it
                """#
        ),
        Example(
            error: .notManager,
            response: #"""
                403
                Cache-Control: no-store
                {"error":"forbidden","message":"this service cannot manage grants: its entry in the services file needs \"manage\": true"}
                """#,
            page: #"""
                403
                this service cannot manage grants: its entry in the services file needs "manage": true
                """#
        ),
        Example(
            error: .unmanagedUser,
            response: #"""
                403
                Cache-Control: no-store
                {"error":"forbidden","message":"this service cannot manage this user: see \"users\" of its entry in the services file"}
                """#,
            page: #"""
                403
                this service cannot manage this user: see "users" of its entry in the services file
                """#
        ),
        Example(
            error: .noUser,
            response: #"""
                404
                Cache-Control: no-store
                {"error":"not_found","message":"no such user is stored, or the user was deleted"}
                """#
        ),
        Example(
            error: .keptEnded,
            response: #"""
                409
                Cache-Control: no-store
                {"error":"ended","message":"the user ended or changed the stored grant: kept, because the record does not have a newer refresh token"}
                """#
        ),
        Example(
            error: .userWasDeleted,
            response: #"""
                409
                Cache-Control: no-store
                {"error":"user_deleted","message":"the user was deleted: not stored until every token that names the user has expired"}
                """#
        ),
        Example(
            error: .manageAuditUnavailable,
            response: #"""
                503
                Cache-Control: no-store
                Retry-After: 5
                {"error":"audit_unavailable","message":"the audit cannot be written now, and grants are not managed without it"}
                """#,
            page: #"""
                503
                Retry-After: 5
                the audit cannot be written now, and grants are not managed without it
                """#
        ),
    ]
}

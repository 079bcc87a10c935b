/// Named answers that Google's token endpoint was seen to give or is documented to give, and some invalid ones.
/// `unconfirmed` marks answers whose status or text is not known from a capture and is a plausible guess.
extension FixedAnswer {
    struct Preset: Sendable {
        let name: String
        let answer: FixedAnswer

        init(_ name: String, _ answer: FixedAnswer) {
            self.name = name
            self.answer = answer
        }

        /// Marks an answer whose status or whole body is not known from a capture.
        static func unconfirmed(_ name: String, _ answer: FixedAnswer) -> Preset { Preset(name, answer) }
    }

    static let presets = grantErrors + clientErrors + policyErrors + temporaryErrors + invalidAnswers

    // MARK: Errors of the grant

    /// The answer for a grant that has ended (https://github.com/apache/opendal/issues/3901).
    static let revoked = error(400, "invalid_grant", "Token has been expired or revoked.")

    /// The answer for a refresh token that Google does not know
    /// (https://github.com/google/gmail-oauth2-tools/issues/29).
    static let unknownToken = error(400, "invalid_grant", "Bad Request")

    private static let grantErrors: [Preset] = [
        Preset("invalid_grant", revoked),
        Preset("invalid_grant_bad_request", unknownToken),
        Preset("invalid_grant_bare", error(400, "invalid_grant")),
        Preset("invalid_rapt", reauthentication("invalid_rapt")),
        Preset("rapt_required", reauthentication("rapt_required")),
        Preset("account_deleted", error(400, "invalid_grant", "The account has been deleted")),
        Preset("account_not_found", error(400, "invalid_grant", "Invalid grant: account not found")),
        Preset("robot_disabled", error(400, "invalid_grant", "Robot is disabled.")),
        Preset("not_a_valid_email", error(400, "invalid_grant", "Not a valid email")),
        .unconfirmed("invalid_jwt", error(400, "invalid_grant", "Invalid JWT Signature.")),
        .unconfirmed("invalid_dpop_proof", error(400, "invalid_dpop_proof")),
        .unconfirmed("use_dpop_nonce", useNonce),
        .unconfirmed("emm_passcode_required", error(400, "emm_passcode_required")),
        .unconfirmed(
            "emm_app_verification_required",
            error(400, "emm_app_verification_required: https://example.com/verify")
        ),
    ]

    /// The answer when an administrator limits the length of sessions.
    ///
    /// See https://developers.google.com/identity/protocols/oauth2#expiration; the body is from
    /// https://github.com/openclaw/gogcli/issues/338.
    private static func reauthentication(_ subtype: String) -> FixedAnswer {
        error(
            400,
            "invalid_grant",
            "reauth related error (\(subtype))",
            more: [
                .init(name: "error_subtype", value: .string(subtype)),
                .init(name: "error_uri", value: "https://support.google.com/a/answer/9368756"),
            ]
        )
    }

    private static var useNonce: FixedAnswer {
        var answer = error(400, "use_dpop_nonce")
        answer.headers = [.init(name: "DPoP-Nonce", value: "eyJ7S_zG.eyJH0-Z.HX4w-7v")]
        return answer
    }

    // MARK: Errors of the client

    static let clientNotFound = error(401, "invalid_client", "The OAuth client was not found.")
    static let otherClientsToken = error(401, "unauthorized_client", "Unauthorized")

    /// The answer to a request without a client id (https://github.com/openid/AppAuth-iOS/issues/226).
    static let noClientID = error(400, "invalid_request", "Could not determine client ID from request.")

    static let unsupportedGrantType = error(400, "unsupported_grant_type", "Invalid grant_type: ")

    private static let clientErrors: [Preset] = [
        Preset("client_not_found", clientNotFound),
        Preset("invalid_client", error(401, "invalid_client", "Unauthorized")),
        .unconfirmed("unauthorized_client", otherClientsToken),
        Preset("deleted_client", error(401, "deleted_client", "The OAuth client was deleted.")),
        .unconfirmed("disabled_client", error(401, "disabled_client", "The OAuth client was disabled.")),
        Preset("no_client_id", noClientID),
        Preset("client_secret_missing", error(400, "invalid_request", "client_secret is missing.")),
        .unconfirmed("restricted_client", error(400, "restricted_client")),
        .unconfirmed("invalid_scope", error(400, "invalid_scope", "Some requested scopes were invalid.")),
        .unconfirmed("unsupported_grant_type", unsupportedGrantType),
    ]

    // MARK: Refusals by an administrator or a policy

    private static let policyErrors: [Preset] = [
        .unconfirmed("admin_policy_enforced", error(400, "admin_policy_enforced")),
        .unconfirmed(
            "policy_enforced",
            error(
                400,
                "policy_enforced",
                "Advanced Protection prevented your Google Account from signing in. "
                    + "This security feature stops most non-Google apps and services from accessing your data."
            )
        ),
        .unconfirmed("access_denied", error(400, "access_denied", "Account restricted")),
        .unconfirmed("access_denied_client", error(400, "access_denied", "Requested client not authorized")),
        .unconfirmed("invalid_account", error(400, "invalid_account", "Forbidden")),
        .unconfirmed(
            "access_not_configured",
            error(
                400,
                "access_not_configured",
                more: [.init(name: "error_uri", value: "https://access.workspace.google.com/ServiceNotAllowed")]
            )
        ),
        .unconfirmed("org_internal", error(400, "org_internal")),
    ]

    // MARK: Temporary errors

    private static let temporaryErrors: [Preset] = [
        .unconfirmed("rate_limit_exceeded", error(403, "rate_limit_exceeded")),
        .unconfirmed("429", throttled(retryAfter: nil)),
        .unconfirmed("429_retry_after", throttled(retryAfter: 30)),
        Preset(
            "403_html",
            html(403, "<HTML><HEAD><TITLE>User Rate Limit Exceeded</TITLE></HEAD><BODY></BODY></HTML>\n")
        ),
        .unconfirmed("internal_failure", error(500, "internal_failure")),
        .unconfirmed("internal_failure_backend", error(500, "internal_failure", "Backend Error")),
        Preset("internal_failure_503", error(503, "internal_failure")),
        .unconfirmed("server_error", error(500, "server_error")),
        .unconfirmed("temporarily_unavailable", error(503, "temporarily_unavailable")),
        .unconfirmed("http408", html(408, "<title>Error 408 (Request Timeout)!!1</title>\n")),
        .unconfirmed("http500", html(500, "<title>Error 500 (Server Error)!!1</title>\n")),
        Preset(
            "html502",
            html(
                502,
                "<!DOCTYPE html>\n<html lang=en>\n<title>Error 502 (Server Error)!!1</title>\n<p><b>502.</b> That's an "
                    + "error.\n<p>The server encountered a temporary error and could not complete your request.<p>Please try "
                    + "again in 30 seconds.\n"
            )
        ),
        .unconfirmed("http503", html(503, "<title>Error 503 (Service Unavailable)!!1</title>\n")),
        .unconfirmed("http504", html(504, "<title>Error 504 (Gateway Timeout)!!1</title>\n")),
        Preset(
            "sorry_redirect",
            html(
                302,
                "<HTML><HEAD><TITLE>302 Moved</TITLE></HEAD></HTML>\n",
                headers: [
                    .init(
                        name: "Location",
                        value: "https://ipv4.google.com/sorry/index?continue=https://oauth2.googleapis.com/token"
                    )
                ]
            )
        ),
        Preset(
            "sorry_html",
            html(
                503,
                "<html><head><title>Sorry...</title></head><body><h1>We're sorry...</h1><p>... but your computer or network "
                    + "may be sending automated queries.</p></body></html>\n"
            )
        ),
        Preset("html400", html(400, "<html><title>Error 400 (Error processing OAuth 2 request)!!1</title></html>\n")),
    ]

    private static func throttled(retryAfter: Int64?) -> FixedAnswer {
        var answer = error(429, "rate_limit_exceeded")
        answer.retryAfter = retryAfter
        return answer
    }

    // MARK: Invalid answers, as a proxy or a bug sends them

    private static let invalidAnswers: [Preset] = [
        Preset("html200", html(200, "<html><body>Sign in to the hotel's network</body></html>\n")),
        Preset("empty200", FixedAnswer(200, body: [])),
        Preset("empty_object200", raw("{}")),
        Preset("garbage200", FixedAnswer(200, body: (0..<512).map { UInt8(truncatingIfNeeded: $0 * 167 + 13) })),
        Preset("truncated200", raw(#"{"access_token":"ya29.truncated","expires_in":35"#)),
        Preset("array200", raw(#"["ya29.array"]"#)),
        Preset("error200", raw(#"{"error":"invalid_grant","error_description":"Bad Request"}"#)),
        Preset("wrong_types200", raw(#"{"access_token":17,"expires_in":"soon","scope":[],"token_type":null}"#)),
        Preset("wrong_token_type200", raw(#"{"access_token":"ya29.mac","expires_in":3599,"token_type":"mac"}"#)),
        Preset("no_expiry200", raw(#"{"access_token":"ya29.without-expiry","token_type":"Bearer"}"#)),
        Preset("huge_expiry200", raw(#"{"access_token":"ya29.huge","expires_in":1e300,"token_type":"Bearer"}"#)),
        Preset("negative_expiry200", raw(#"{"access_token":"ya29.negative","expires_in":-1,"token_type":"Bearer"}"#)),
        Preset("oversized200", raw(#"{"access_token":""# + String(repeating: "a", count: 131_072) + #""}"#)),
    ]

    private static func raw(_ body: String) -> FixedAnswer { FixedAnswer(200, body: Array(body.utf8)) }
}

/// A simulated fault that replaces a good answer.
enum SandboxFault: Equatable, Sendable {
    /// A fixed answer, regardless of the request.
    case answer(FixedAnswer)

    /// The connection ends without a byte. The request is not processed.
    case reset

    /// No answer for a minute, then the connection ends. The request is not processed.
    case hang

    /// The request is processed, including a rotation, and the connection ends without a byte: the answer is lost.
    case lostAnswer

    /// The request is processed and answered, but the answer lacks the access token.
    case withoutAccessToken

    /// Finds a fault by its name in a control request.
    init?(named name: String) {
        switch name {
        case "reset": self = .reset
        case "hang": self = .hang
        case "lost_answer": self = .lostAnswer
        case "without_access_token": self = .withoutAccessToken
        default:
            guard let preset = FixedAnswer.presets.first(where: { $0.name == name }) else { return nil }
            self = .answer(preset.answer)
        }
    }

    /// The fault's name, or the label of an answer without a name.
    var name: String {
        guard case .answer(let answer) = self else { return label }
        return FixedAnswer.presets.first { $0.answer == answer }?.name ?? label
    }

    /// All names that ``init(named:)`` accepts.
    static var names: [String] {
        FixedAnswer.presets.map(\.name) + ["reset", "hang", "lost_answer", "without_access_token"]
    }

    /// The name in the statistics.
    var label: String {
        switch self {
        case .answer(let answer): answer.label
        case .reset: "reset"
        case .hang: "hang"
        case .lostAnswer: "lost_answer"
        case .withoutAccessToken: "without_access_token"
        }
    }
}

/// An answer that does not depend on the request.
struct FixedAnswer: Equatable, Sendable {
    struct Header: Equatable, Sendable {
        let name: String
        let value: String
    }

    var status: Int
    var contentType = "application/json; charset=utf-8"
    var headers: [Header] = []
    var body: [UInt8]

    /// The name in the statistics: the OAuth error, or the status if there is none.
    let label: String

    /// The seconds of the Retry-After header, which the settings can override. `nil` sends the header only if the
    /// settings set it.
    var retryAfter: Int64?

    init(_ status: Int, contentType: String? = nil, headers: [Header] = [], body: [UInt8], retryAfter: Int64? = nil) {
        self.status = status
        self.contentType = contentType ?? self.contentType
        self.headers = headers
        self.body = body
        self.retryAfter = retryAfter
        label = OrderedJSON.parsed(body)?["error"]?.stringValue ?? "http_\(status)"
    }

    /// Makes an OAuth error (https://www.rfc-editor.org/rfc/rfc6749#section-5.2).
    static func error(
        _ status: Int,
        _ code: String,
        _ description: String? = nil,
        subtype: String? = nil,
        uri: String? = nil
    ) -> FixedAnswer {
        let body: OrderedJSON = [
            "error": .string(code),
            "error_description": description.map(OrderedJSON.string),
            "error_subtype": subtype.map(OrderedJSON.string),
            "error_uri": uri.map(OrderedJSON.string),
        ]
        return FixedAnswer(status, body: Array(body.text.utf8))
    }

    static func html(_ status: Int, _ text: String, headers: [Header] = []) -> FixedAnswer {
        FixedAnswer(status, contentType: "text/html; charset=utf-8", headers: headers, body: Array(text.utf8))
    }
}

/// Named answers that Google's token endpoint was seen to give or is documented to give, and some invalid ones.
/// "Unconfirmed" marks answers whose status or text is not known from a capture and is a plausible guess.
extension FixedAnswer {
    /// An answer that a test can ask for by its name.
    struct Preset: Sendable {
        let name: String
        let answer: FixedAnswer

        init(_ name: String, _ answer: FixedAnswer) {
            self.name = name
            self.answer = answer
        }
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
        Preset("invalid_jwt", error(400, "invalid_grant", "Invalid JWT Signature.")),  // unconfirmed
        Preset("invalid_dpop_proof", error(400, "invalid_dpop_proof")),  // unconfirmed
        Preset("use_dpop_nonce", useNonce),  // unconfirmed
        Preset("emm_passcode_required", error(400, "emm_passcode_required")),  // unconfirmed
        // Unconfirmed.
        Preset(
            "emm_app_verification_required",
            error(400, "emm_app_verification_required: https://example.com/verify")
        ),
    ]

    /// The answer when an administrator limits the length of sessions.
    ///
    /// See https://developers.google.com/identity/protocols/oauth2#expiration. The body is from
    /// https://github.com/openclaw/gogcli/issues/338.
    private static func reauthentication(_ subtype: String) -> FixedAnswer {
        error(
            400,
            "invalid_grant",
            "reauth related error (\(subtype))",
            subtype: subtype,
            uri: "https://support.google.com/a/answer/9368756"
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

    /// The answer to a client without an attestation, if App Check is enforced for it. Seen on the consent page
    /// (https://github.com/capawesome-team/capacitor-firebase/issues/943), unconfirmed for a refresh.
    static let appNotAuthentic = error(
        400,
        "invalid_request",
        "We cannot verify the authenticity of this app. Token failed."
    )

    static let unsupportedGrantType = error(400, "unsupported_grant_type", "Invalid grant_type: ")

    private static let clientErrors: [Preset] = [
        Preset("client_not_found", clientNotFound),
        Preset("invalid_client", error(401, "invalid_client", "Unauthorized")),
        Preset("unauthorized_client", otherClientsToken),  // unconfirmed
        Preset("deleted_client", error(401, "deleted_client", "The OAuth client was deleted.")),
        Preset("disabled_client", error(401, "disabled_client", "The OAuth client was disabled.")),  // unconfirmed
        Preset("no_client_id", noClientID),
        Preset("client_secret_missing", error(400, "invalid_request", "client_secret is missing.")),
        Preset("app_not_authentic", appNotAuthentic),  // unconfirmed
        Preset("restricted_client", error(400, "restricted_client")),  // unconfirmed
        Preset("invalid_scope", error(400, "invalid_scope", "Some requested scopes were invalid.")),  // unconfirmed
        Preset("unsupported_grant_type", unsupportedGrantType),  // unconfirmed
    ]

    // MARK: Refusals by an administrator or a policy

    private static let policyErrors: [Preset] = [
        Preset("admin_policy_enforced", error(400, "admin_policy_enforced")),  // unconfirmed
        // Unconfirmed.
        Preset(
            "policy_enforced",
            error(
                400,
                "policy_enforced",
                "Advanced Protection prevented your Google Account from signing in. "
                    + "This security feature stops most non-Google apps and services from accessing your data."
            )
        ),
        Preset("access_denied", error(400, "access_denied", "Account restricted")),  // unconfirmed
        Preset("access_denied_client", error(400, "access_denied", "Requested client not authorized")),  // unconfirmed
        Preset("invalid_account", error(400, "invalid_account", "Forbidden")),  // unconfirmed
        // Unconfirmed.
        Preset(
            "access_not_configured",
            error(400, "access_not_configured", uri: "https://access.workspace.google.com/ServiceNotAllowed")
        ),
        Preset("org_internal", error(400, "org_internal")),  // unconfirmed
    ]

    // MARK: Temporary errors

    private static let temporaryErrors: [Preset] = [
        Preset("rate_limit_exceeded", error(403, "rate_limit_exceeded")),  // unconfirmed
        Preset("429", throttled(retryAfter: nil)),  // unconfirmed
        Preset("429_retry_after", throttled(retryAfter: 30)),  // unconfirmed
        Preset(
            "403_html",
            html(403, "<HTML><HEAD><TITLE>User Rate Limit Exceeded</TITLE></HEAD><BODY></BODY></HTML>\n")
        ),
        Preset("internal_failure", error(500, "internal_failure")),  // unconfirmed
        Preset("internal_failure_backend", error(500, "internal_failure", "Backend Error")),  // unconfirmed
        Preset("internal_failure_503", error(503, "internal_failure")),
        Preset("server_error", error(500, "server_error")),  // unconfirmed
        Preset("temporarily_unavailable", error(503, "temporarily_unavailable")),  // unconfirmed
        Preset("http408", html(408, "<title>Error 408 (Request Timeout)!!1</title>\n")),  // unconfirmed
        Preset("http500", html(500, "<title>Error 500 (Server Error)!!1</title>\n")),  // unconfirmed
        Preset(
            "html502",
            html(
                502,
                "<!DOCTYPE html>\n<html lang=en>\n<title>Error 502 (Server Error)!!1</title>\n<p><b>502.</b> That's an "
                    + "error.\n<p>The server encountered a temporary error and could not complete your request.<p>Please try "
                    + "again in 30 seconds.\n"
            )
        ),
        Preset("http503", html(503, "<title>Error 503 (Service Unavailable)!!1</title>\n")),  // unconfirmed
        Preset("http504", html(504, "<title>Error 504 (Gateway Timeout)!!1</title>\n")),  // unconfirmed
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

import Crypto
import GoogleOAuth
import Testing

/// An answer that was seen in practice, with its verdict.
struct SeenAnswer: Sendable, CustomTestStringConvertible {
    var status: Int
    var body: String
    var kind: VerdictKind
    var code: String

    init(_ status: Int, _ body: String, _ kind: VerdictKind, _ code: String) {
        self.status = status
        self.body = body
        self.kind = kind
        self.code = code
    }

    var testDescription: String { "\(status) \(body.prefix(90))" }
}

/// Google's error page, as its front end sends it for 4xx and 5xx.
private func page(_ title: String, _ text: String) -> String {
    """
    <!DOCTYPE html><html lang=en><meta charset=utf-8><title>\(title)</title>\
    <p><b>\(title)</b> <ins>\(text)</ins>
    """
}

/// The error answers of the token endpoint in public issues, libraries and Google's own pages.
///
/// The comments give the sources. If no capture shows the status, the row has the documented or most likely one;
/// `StatusTests` shows that at 400, 401 and 403 only the code decides.
private let seen: [SeenAnswer] = [
    // https://github.com/apache/opendal/issues/3901
    SeenAnswer(
        400,
        #"{"error":"invalid_grant","error_description":"Token has been expired or revoked."}"#,
        .invalidGrant,
        "invalid_grant"
    ),
    // https://github.com/google/gmail-oauth2-tools/issues/29
    SeenAnswer(400, #"{"error":"invalid_grant","error_description":"Bad Request"}"#, .invalidGrant, "invalid_grant"),
    // https://github.com/Triple-T/gradle-play-publisher/issues/131
    SeenAnswer(400, #"{"error":"invalid_grant"}"#, .invalidGrant, "invalid_grant"),
    SeenAnswer(400, "{\n  \"error\" : \"invalid_grant\"\n}", .invalidGrant, "invalid_grant"),
    // https://github.com/GAM-team/GAM/issues/1171
    SeenAnswer(
        400,
        #"{"error":"invalid_grant","error_description":"The account has been deleted"}"#,
        .invalidGrant,
        "invalid_grant"
    ),
    // Service accounts only, https://github.com/googleapis/google-cloud-php/issues/3622
    SeenAnswer(
        400,
        #"{"error":"invalid_grant","error_description":"Invalid grant: account not found"}"#,
        .invalidGrant,
        "invalid_grant"
    ),
    SeenAnswer(
        400,
        #"{"error":"invalid_grant","error_description":"Robot is disabled."}"#,
        .invalidGrant,
        "invalid_grant"
    ),
    SeenAnswer(
        400,
        #"{"error":"invalid_grant","error_description":"Not a valid email"}"#,
        .invalidGrant,
        "invalid_grant"
    ),
    SeenAnswer(
        400,
        #"{"error":"invalid_grant","error_description":"Invalid JWT: Token must be a short-lived token"}"#,
        .invalidGrant,
        "invalid_grant"
    ),
    // https://github.com/openclaw/gogcli/issues/338
    SeenAnswer(
        400,
        """
        {"error":"invalid_grant","error_description":"reauth related error (invalid_rapt)",\
        "error_subtype":"invalid_rapt","error_uri":"https://support.google.com/a/answer/9368756"}
        """,
        .signInRequired,
        "invalid_rapt"
    ),
    // google-auth-library-python, google/oauth2/reauth.py
    SeenAnswer(
        400,
        #"{"error":"invalid_grant","error_description":"reauth related error (rapt_required)","error_subtype":"rapt_required"}"#,
        .signInRequired,
        "rapt_required"
    ),
    SeenAnswer(400, #"{"error":"invalid_grant","error_subtype":"something_new"}"#, .invalidGrant, "invalid_grant"),
    // https://github.com/simonrob/email-oauth2-proxy/issues/362
    SeenAnswer(
        401,
        #"{"error":"invalid_client","error_description":"The OAuth client was not found."}"#,
        .clientFault,
        "invalid_client"
    ),
    // https://github.com/google/GTMAppAuth/issues/15
    SeenAnswer(401, #"{"error":"invalid_client","error_description":"Unauthorized"}"#, .clientFault, "invalid_client"),
    // https://github.com/googleapis/google-auth-library-python/issues/1561
    SeenAnswer(
        401,
        #"{"error":"unauthorized_client","error_description":"Unauthorized"}"#,
        .clientOrForeignToken,
        "unauthorized_client"
    ),
    // https://github.com/fsspec/gcsfs/issues/108
    SeenAnswer(
        401,
        #"{"error":"deleted_client","error_description":"The OAuth client was deleted."}"#,
        .clientFault,
        "deleted_client"
    ),
    // WP Mail SMTP's table of errors
    SeenAnswer(
        401,
        #"{"error":"disabled_client","error_description":"The OAuth client was disabled."}"#,
        .clientFault,
        "disabled_client"
    ),
    // https://github.com/openid/AppAuth-iOS/issues/226
    SeenAnswer(
        400,
        #"{"error":"invalid_request","error_description":"Could not determine client ID from request."}"#,
        .clientOrForeignToken,
        "invalid_request"
    ),
    SeenAnswer(
        400,
        #"{"error":"invalid_request","error_description":"client_secret is missing."}"#,
        .clientOrForeignToken,
        "invalid_request"
    ),
    // https://github.com/capawesome-team/capacitor-firebase/issues/943, on the consent page
    SeenAnswer(
        400,
        #"{"error":"invalid_request","error_description":"We cannot verify the authenticity of this app. Token failed."}"#,
        .appNotAuthentic,
        "app_not_authentic"
    ),
    // https://developers.google.com/identity/protocols/oauth2
    SeenAnswer(400, #"{"error":"admin_policy_enforced"}"#, .blocked, "admin_policy_enforced"),
    // https://github.com/twentyhq/twenty/issues/25148
    SeenAnswer(
        400,
        """
        {"error":"policy_enforced","error_description":"Advanced Protection prevented your Google Account from \
        signing in. This security feature stops most non-Google apps"}
        """,
        .blocked,
        "policy_enforced"
    ),
    // GAM, glapi.py
    SeenAnswer(
        403,
        #"{"error":"access_denied","error_description":"Account restricted"}"#,
        .blocked,
        "access_denied"
    ),
    SeenAnswer(
        403,
        #"{"error":"access_denied","error_description":"Requested client not authorized"}"#,
        .blocked,
        "access_denied"
    ),
    SeenAnswer(403, #"{"error":"invalid_account","error_description":"Forbidden"}"#, .blocked, "invalid_account"),
    SeenAnswer(
        400,
        #"{"error":"access_not_configured","error_uri":"https://access.workspace.google.com/ServiceNotAllowed"}"#,
        .blocked,
        "access_not_configured"
    ),
    SeenAnswer(403, #"{"error":"org_internal"}"#, .blocked, "org_internal"),
    // Chromium, google_apis/gaia/oauth2_access_token_fetcher_impl.cc
    SeenAnswer(400, #"{"error":"restricted_client"}"#, .clientFault, "restricted_client"),
    SeenAnswer(400, #"{"error":"invalid_scope"}"#, .clientFault, "invalid_scope"),
    SeenAnswer(400, #"{"error":"unsupported_grant_type"}"#, .clientFault, "unsupported_grant_type"),
    SeenAnswer(403, #"{"error":"rate_limit_exceeded"}"#, .throttled, "rate_limit_exceeded"),
    // https://github.com/googleapis/google-auth-library-python/issues/368
    SeenAnswer(400, #"{"error":"internal_failure"}"#, .endpointFault, "internal_failure"),
    SeenAnswer(
        400,
        #"{"error":"internal_failure","error_description":"Backend Error"}"#,
        .endpointFault,
        "internal_failure"
    ),
    SeenAnswer(400, #"{"error":"internal_failure: Backend Error"}"#, .endpointFault, "internal_failure"),
    SeenAnswer(503, #"{"error":"internal_failure"}"#, .endpointFault, "http_503"),
    SeenAnswer(400, #"{"error":"server_error"}"#, .endpointFault, "server_error"),
    SeenAnswer(400, #"{"error":"temporarily_unavailable"}"#, .endpointFault, "temporarily_unavailable"),
    // https://github.com/googleapis/google-auth-library-python/issues/1260
    SeenAnswer(
        502,
        page(
            "Error 502 (Server Error)!!1",
            "The server encountered a temporary error. Please try again in 30 seconds."
        ),
        .endpointFault,
        "http_502"
    ),
    // https://stackoverflow.com/questions/16367391
    SeenAnswer(
        403,
        "<HTML><HEAD><TITLE>User Rate Limit Exceeded</TITLE></HEAD><BODY>User Rate Limit Exceeded</BODY></HTML>",
        .throttled,
        "http_403"
    ),
    // https://github.com/googleapis/google-api-php-client/issues/501
    SeenAnswer(302, "<A HREF=\"https://ipv4.google.com/sorry/index\">here</A>", .endpointFault, "http_302"),
    SeenAnswer(
        503,
        page("Sorry...", "We're sorry... but your computer or network may be sending automated queries."),
        .endpointFault,
        "http_503"
    ),
    SeenAnswer(
        200,
        page("Sorry...", "We're sorry... but your computer or network may be sending automated queries."),
        .notJSON,
        "not_json"
    ),
    // https://github.com/wp-plugins/gapi-google-analytics-php-interface, 2013
    SeenAnswer(
        400,
        page("Error 400 (Bad Request)", "Error processing OAuth 2 request"),
        .endpointFault,
        "http_400"
    ),
    // https://developers.google.com/identity/protocols/oauth2/native-app
    SeenAnswer(400, #"{"error":"invalid_dpop_proof"}"#, .proofRefused, "invalid_dpop_proof"),
    SeenAnswer(400, #"{"error":"use_dpop_nonce"}"#, .proofRefused, "use_dpop_nonce"),
    // GoogleSignIn-iOS, GIDEMMErrorHandler.m
    SeenAnswer(400, #"{"error":"emm_passcode_required"}"#, .signInRequired, "emm_passcode_required"),
    SeenAnswer(400, #"{"error":"emm_app_verification_required"}"#, .signInRequired, "emm_app_verification_required"),
    SeenAnswer(
        400,
        #"{"error":"emm_app_verification_required: https://m.google.com/app/verify?k=1"}"#,
        .signInRequired,
        "emm_app_verification_required"
    ),
    SeenAnswer(403, #"{"error":"emm_something_new"}"#, .signInRequired, "emm_something_new"),
]

@Suite("Answers that have been seen")
struct SeenAnswerTests {
    @Test("The verdict on each answer that has been seen", arguments: seen)
    func verdict(_ answer: SeenAnswer) {
        let verdict = read(answer.status, answer.body).verdict
        #expect(verdict.kind == answer.kind)
        #expect(verdict.code == answer.code)
    }

    @Test("Google's own sample and captured answers are good")
    func samples() throws {
        let sample = """
            {"access_token": "1/fFAGRNJru1FTz70BzhT3Zg", "expires_in": 3920, "scope": \
            "https://www.googleapis.com/auth/drive.metadata.readonly https://www.googleapis.com/auth/calendar.readonly", \
            "token_type": "Bearer"}
            """
        let tokens = try #require(read(200, sample).verdict.tokens)
        #expect(tokens.accessToken.reveal() == "1/fFAGRNJru1FTz70BzhT3Zg")
        #expect(tokens.lifetime == .seconds(3920))
        #expect(tokens.type == "Bearer")
        #expect(tokens.scope?.split(separator: " ").count == 2)
        #expect(tokens.rotated == nil)
        #expect(tokens.refreshTokenLifetime == nil)

        let captured = """
            {"access_token":"ya29.a0Af","expires_in":3599,"scope":"openid","token_type":"Bearer","id_token":"e30.e30.x",\
            "refresh_token":"1//next","refresh_token_expires_in":604799}
            """
        let full = try #require(read(200, captured).verdict.tokens)
        #expect(full.lifetime == .seconds(3599))
        #expect(full.rotated?.reveal() == "1//next")
        #expect(full.refreshTokenLifetime == .seconds(604_799))
    }

    @Test("The earlier end counts, and a timeout is no end")
    func draftMembers() throws {
        func tokens(_ members: String) throws -> TokenResponse {
            try #require(read(200, #"{"access_token":"a",\#(members)}"#).verdict.tokens)
        }
        #expect(try tokens(#""authorization_expires_in":60"#).refreshTokenLifetime == .seconds(60))
        let both = #""refresh_token_expires_in":604799,"authorization_expires_in"#
        #expect(try tokens(both + #"":60"#).refreshTokenLifetime == .seconds(60))
        #expect(try tokens(both + #"":604800"#).refreshTokenLifetime == .seconds(604_799))
        let idle = try tokens(#""refresh_token_timeout":86400"#)
        #expect(idle.refreshTokenTimeout == .seconds(86_400))
        #expect(idle.refreshTokenLifetime == nil)
    }

    @Test("Another form of a draft's members is ignored", arguments: ["0", "-1", "null", "\"60\"", "{}", "1e30"])
    func otherDrafts(value: String) throws {
        let body = #"{"access_token":"a","authorization_expires_in":\#(value),"refresh_token_timeout":\#(value)}"#
        let tokens = try #require(read(200, body).verdict.tokens)
        #expect(tokens.refreshTokenLifetime == nil)
        #expect(tokens.refreshTokenTimeout == nil)
    }
}

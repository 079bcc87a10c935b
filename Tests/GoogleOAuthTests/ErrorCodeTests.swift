import Testing

@testable import GoogleOAuth
@testable import HTTPClient

/// The error codes of Google and their verdicts, as in the table of docs/architecture.md.
private let codes: [(code: String, kind: VerdictKind)] = [
    ("invalid_grant", .invalidGrant),
    ("emm_passcode_required", .signInRequired),
    ("invalid_dpop_proof", .proofRefused),
    ("use_dpop_nonce", .proofRefused),
    ("admin_policy_enforced", .blocked),
    ("policy_enforced", .blocked),
    ("org_internal", .blocked),
    ("access_not_configured", .blocked),
    ("access_denied", .blocked),
    ("invalid_account", .blocked),
    ("invalid_client", .clientFault),
    ("deleted_client", .clientFault),
    ("disabled_client", .clientFault),
    ("invalid_scope", .clientFault),
    ("restricted_client", .clientFault),
    ("unsupported_grant_type", .clientFault),
    ("unauthorized_client", .clientOrForeignToken),
    ("invalid_request", .clientOrForeignToken),
    ("rate_limit_exceeded", .throttled),
    ("internal_failure", .endpointFault),
    ("server_error", .endpointFault),
    ("temporarily_unavailable", .endpointFault),
]

@Suite("Status and code")
struct ErrorCodeTests {
    @Test("The code decides, whatever the status of the refusal", arguments: [400, 401, 403])
    func codeDecides(status: Int) {
        for (code, kind) in codes {
            let verdict = read(status, #"{"error":"\#(code)"}"#).verdict
            #expect(verdict.kind == kind, "\(status) \(code)")
            if kind != .throttled || status != 403 { #expect(verdict.code == code) }
        }
    }

    @Test("Throttling and endpoint faults are recognised by status, whatever the body is")
    func statusDecides() {
        for (code, _) in codes {
            let body = #"{"error":"\#(code)"}"#
            #expect(read(429, body).verdict.kind == .throttled)
            for status in [300, 301, 302, 303, 307, 308, 408, 500, 502, 503, 504, 599] {
                #expect(read(status, body).verdict.kind == .endpointFault, "\(status) \(code)")
            }
        }
    }

    @Test(
        "Unknown codes",
        arguments: [
            (400, #"{"error":"brand_new"}"#, "brand_new"), (401, #"{"error":"brand_new"}"#, "brand_new"),
            (400, #"{"message":"no"}"#, "http_400"), (400, #"{"error":{"code":400}}"#, "http_400"),
            (401, #"{"error":null}"#, "http_401"), (404, #"{"error":"invalid_grant"}"#, "http_404"),
            (405, "", "http_405"), (407, "", "http_407"), (410, "", "http_410"), (418, "", "http_418"),
            (201, #"{"access_token":"a"}"#, "http_201"), (204, "", "http_204"), (206, "{}", "http_206"),
            (600, "", "http_600"),
        ]
    )
    func unknown(status: Int, body: String, code: String) {
        let verdict = read(status, body).verdict
        #expect(verdict.kind == .unknown)
        #expect(verdict.code == code)
    }

    @Test("Any other 403 is throttling", arguments: ["", "{}", #"{"error":"brand_new"}"#, "[]", "Forbidden"])
    func forbidden(body: String) {
        #expect(read(403, body).verdict.kind == .throttled)
    }

    @Test("A 4xx without JSON is a fault of the endpoint, because a proxy sent it", arguments: [400, 401])
    func pages(status: Int) {
        for body in ["", "<html>", "\"invalid_grant\"", "[\"invalid_grant\"]", #"{"error":"invalid_grant""#] {
            #expect(read(status, body).verdict.kind == .endpointFault, "\(status) \(body)")
        }
    }

    @Test(
        "A missing answer is temporary; an unsent request says nothing about the grant",
        arguments: [
            (HTTPError.Kind.resolve, VerdictKind.noAnswer, "resolve"), (.connect, .noAnswer, "connect"),
            (.tls, .noAnswer, "tls"), (.certificate, .noAnswer, "certificate"), (.timeout, .noAnswer, "timeout"),
            (.sendFailed, .noAnswer, "send_failed"), (.receiveFailed, .noAnswer, "receive_failed"),
            (.bodyTooLarge, .noAnswer, "body_too_large"), (.headersTooLarge, .noAnswer, "headers_too_large"),
            (.invalidURL, .noAnswer, "invalid_url"), (.invalidHeader, .noAnswer, "invalid_header"),
            (.other, .noAnswer, "other"), (.withheld, .notSent, "withheld"), (.cancelled, .notSent, "cancelled"),
            (.shutDown, .notSent, "shut_down"), (.expired, .notSent, "expired"),
        ]
    )
    func failures(failure: HTTPError.Kind, kind: VerdictKind, code: String) {
        let answer = ParsedRefreshResponse.reading(HTTPError(kind: failure, message: "why"))
        #expect(answer.verdict.kind == kind)
        #expect(answer.verdict.code == code)
        #expect(answer.status == nil && !answer.verdict.isOutcomeUnknown)
    }

    @Test(
        "A request that was sent, and then cancelled or not answered, may have been processed",
        arguments: [(HTTPError.Kind.cancelled, VerdictKind.givenUp), (.shutDown, .givenUp), (.timeout, .noAnswer)]
    )
    func unknownOutcome(failure: HTTPError.Kind, kind: VerdictKind) {
        let answer = ParsedRefreshResponse.reading(HTTPError(kind: failure, outcomeUnknown: true, message: "why"))
        #expect(answer.verdict.kind == kind && answer.verdict.isOutcomeUnknown)
    }

    @Test(
        "The delay that the server asks for",
        arguments: [
            ("Retry-After: 30\r\n", Duration.seconds(30)), ("retry-after:  7 \r\n", .seconds(7)),
            ("Retry-After: 0\r\n", .zero), ("Retry-After: 3600\r\n", .seconds(3600)),
            ("Retry-After: 3601\r\n", .seconds(3600)), ("Retry-After: 99999999999999999999999\r\n", .seconds(3600)),
            ("", nil), ("Retry-After:\r\n", nil), ("Retry-After: -1\r\n", nil), ("Retry-After: 1.5\r\n", nil),
            ("Retry-After: +5\r\n", nil), ("Retry-After: soon\r\n", nil), ("Retry-After: \u{0663}\r\n", nil),
            ("Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n", nil),
        ] as [(String, Duration?)]
    )
    func retryAfter(header: String, expected: Duration?) {
        #expect(read(429, "", headers: header).retryAfter == expected)
        #expect(read(503, "", headers: header).retryAfter == expected)
    }
}

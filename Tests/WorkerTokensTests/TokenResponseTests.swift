import Testing

@testable import WorkerTokens

@Suite("The worker's responses")
struct TokenResponseTests {
    @Test(
        "Each has its error",
        arguments: [
            (
                409, #"{"error":"reauth_required","message":"m","reason":"invalid_grant"}"#,
                .signInAgain(reason: "invalid_grant")
            ),
            (409, #"{"error":"disconnected","message":"m","reason":null}"#, .signInAgain(reason: nil)),
            (
                409, #"{"error":"suspended","message":"m","reason":"admin_policy_enforced"}"#,
                .suspended(reason: "admin_policy_enforced")
            ),
            (403, #"{"error":"missing_scopes","message":"m","missing":["openid"]}"#, .missingScopes(["openid"])),
            (403, #"{"error":"forbidden","message":"not this user"}"#, .forbidden(message: "not this user")),
            (404, #"{"error":"not_found","message":"m"}"#, .unknownUser),
            (404, #"{"error":"unknown_path","message":"no such route"}"#, .invalidRequest(message: "no such route")),
            (401, #"{"error":"unauthorized","message":"m"}"#, .unknownCredential),
            (400, #"{"error":"invalid_request","message":"wrong"}"#, .invalidRequest(message: "wrong")),
            (500, #"{"error":"token_unreadable","message":"m"}"#, .unreadableToken),
            (503, #"{"error":"no_services","message":"m"}"#, .tryAgain(after: 5, reason: "no_services")),
        ] as [(Int, String, TokenError)]
    )
    func errors(status: Int, body: String, error: TokenError) {
        #expect(Self.error(status: status, body: body) == error)
    }

    @Test(
        "The wait is that of Retry-After, in whole seconds of at most a day",
        arguments: [("7", 7), (nil, 5), ("0", 5), ("-3", 5), ("soon", 5), ("9999999", 86_400)] as [(String?, Double)]
    )
    func wait(retryAfter: String?, seconds: Double) {
        let body = #"{"error":"unavailable","message":"m","reason":"just_tried"}"#
        let error = Self.error(status: 503, body: body, retryAfter: retryAfter)
        #expect(error == .tryAgain(after: seconds, reason: "just_tried"))
    }

    @Test(
        "The page of a proxy never says that the user must sign in again",
        arguments: [
            (409, "<html>", .unreadableResponse(status: 409)), (403, "", .unreadableResponse(status: 403)),
            (409, #"{"error":"conflict"}"#, .unreadableResponse(status: 409)),
            (404, "<html>", .unreadableResponse(status: 404)), (302, "", .unreadableResponse(status: 302)),
            (502, "<html>", .tryAgain(after: 5, reason: "http_502")), (200, "<html>", .unreadableResponse(status: 200)),
            (200, "{}", .unreadableResponse(status: 200)),
        ] as [(Int, String, TokenError)]
    )
    func foreignPages(status: Int, body: String, error: TokenError) {
        #expect(Self.error(status: status, body: body) == error)
    }

    @Test("An empty token, and one of a negative life, are refused", arguments: [("", 3599), ("ya29", -1)])
    func impossibleTokens(value: String, seconds: Int) {
        let response = FakeWorker.token(value, expiresIn: seconds)
        #expect(TokenResponse.result(of: response, sentAt: 0) == .failure(.unreadableResponse(status: 200)))
    }

    private static func error(status: Int, body: String, retryAfter: String? = nil) -> TokenError? {
        let response = FakeWorker.response(status, body, retryAfter: retryAfter)
        guard case .failure(let error) = TokenResponse.result(of: response, sentAt: 0) else { return nil }
        return error
    }
}

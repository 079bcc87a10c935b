internal import Base
package import Crypto
package import HTTPClient

/// The verdict on an answer to a refresh, with the other data of the answer.
package struct ParsedRefreshResponse: Sendable {
    package var verdict: RefreshVerdict
    package var status: Int?
    /// The delay that the server asks for.
    package var retryAfter: Duration?
    /// Google's error text, shortened.
    ///
    /// It never contains the token that was sent.
    package var text: String?
}

/// Reads a response. Its form and error code decide, not its status alone.
extension ParsedRefreshResponse {
    /// Reads the response to a refresh.
    ///
    /// Texts that repeat a secret of `sent` are left out.
    package static func reading(_ response: RawRefreshResponse, sent: [Secret]) -> ParsedRefreshResponse {
        switch response {
        case .result(.success(let response)): reading(response, sent: sent)
        case .result(.failure(let failure)): reading(failure, sent: sent)
        case .answer(let answer): answer
        }
    }

    private static func reading(_ failure: HTTPError, sent: [Secret]) -> ParsedRefreshResponse {
        guard let response = failure.partialResponse, let recovered = recoverRotatedToken(from: response, sent: sent)
        else { return reading(failure) }
        return recovered
    }

    /// Reads the token endpoint's answer to a refresh.
    static func reading(_ response: HTTPResponse, sent: [Secret]) -> ParsedRefreshResponse {
        if response.status == 200, let tokens = response.body.withBytes({ TokenResponse(plain: $0) }) {
            return ParsedRefreshResponse(verdict: .granted(tokens), status: response.status)
        }
        let body = JSONValue.object(in: response.body.reveal())
        let isCompleteSuccess = response.status == 200 && body != nil
        if !isCompleteSuccess, let recovered = recoverRotatedToken(from: response, sent: sent) { return recovered }
        let verdict = verdict(status: response.status, body: body, sent: sent)
        if case .granted = verdict { return ParsedRefreshResponse(verdict: verdict, status: response.status) }
        return ParsedRefreshResponse(
            verdict: verdict,
            status: response.status,
            retryAfter: response.retryAfter,
            text: ErrorCode.excerpt(of: body, without: sent)
        )
    }

    /// Returns the rotated refresh token of a broken success, if it arrived complete, or `nil` for every other answer.
    ///
    /// The server has spent the token that was sent, so the new one is kept despite any other flaw. The status is not
    /// 200, for example, or the body is truncated, is longer than announced, or has an error.
    ///
    /// With the status of an error, it counts only beside an access token. Example: a 400 has `"refresh_token":"***"`,
    /// because a proxy repeats the request and masks its token. Stored, this text would cost the user's grant.
    private static func recoverRotatedToken(from response: HTTPResponse, sent: [Secret]) -> ParsedRefreshResponse? {
        let members = JSONValue.partialObject(in: response.body.reveal())
        guard let rotated = Token.optional(members?["refresh_token"]).value else { return nil }
        let isSuccess = (200..<300).contains(response.status)
        if !isSuccess {
            let hasAccessToken = Token.required(members?["access_token"]) != nil
            guard hasAccessToken, !sent.contains(rotated) else { return nil }
        }
        return ParsedRefreshResponse(verdict: .flawed(code: "flawed_answer", rotated: rotated), status: response.status)
    }

    /// Returns the meaning of a request that got no answer.
    static func reading(_ failure: HTTPError) -> ParsedRefreshResponse {
        switch failure.kind {
        case .withheld, .expired:
            ParsedRefreshResponse(verdict: .notSent(code: failure.shortCode))
        case .cancelled, .shutDown:
            ParsedRefreshResponse(
                verdict: failure.outcomeUnknown
                    ? .givenUp(code: failure.shortCode) : .notSent(code: failure.shortCode)
            )
        default:
            ParsedRefreshResponse(
                verdict: .noAnswer(code: failure.shortCode, outcomeUnknown: failure.outcomeUnknown),
                text: failure.description
            )
        }
    }

    private static func verdict(status: Int, body: JSONValue?, sent: [Secret]) -> RefreshVerdict {
        let error = body?["error"]?.string.map(ErrorCode.bare)
        switch status {
        case 200:
            return success(body)
        case 429:
            return .throttled(code: "http_429")
        case 400, 401, 403:
            let subtype = body?["error_subtype"]?.string
            if let error, let verdict = ErrorCode.verdict(on: error, subtype: subtype, sent: sent) { return verdict }
            if status == 403 { return .throttled(code: "http_403") }
            guard let error else {
                return body == nil ? .endpointFault(code: "http_\(status)") : .unknown(code: "http_\(status)")
            }
            return .unknown(code: ErrorCode.name(error, without: sent) ?? "unlisted_error")
        case 300..<400, 408, 500..<600:
            return .endpointFault(code: "http_\(status)")
        default:
            return .unknown(code: "http_\(status)")
        }
    }

    private static func success(_ body: JSONValue?) -> RefreshVerdict {
        guard let body else { return .notJSON }
        let rotated = Token.optional(body["refresh_token"])
        guard let tokens = TokenResponse(body, rotated: rotated.value) else {
            return .flawed(code: "flawed_answer", rotated: rotated.value)
        }
        guard rotated.isWellFormed, body["error"] == nil else {
            return .flawed(code: "flawed_answer", rotated: rotated.value)
        }
        return .granted(tokens)
    }
}

/// The unparsed response to a refresh.
///
/// Parsing takes time, so the thread that receives responses does not do it.
package enum RawRefreshResponse: Sendable {
    case result(Result<HTTPResponse, HTTPError>)
    /// A verdict that is known already: the first response for a known account is read earlier.
    case answer(ParsedRefreshResponse)
}

extension HTTPError {
    /// The kind of failure as a code of lower-case words, such as `receive_failed`.
    var shortCode: String {
        var code = ""
        var isInsideWord = false
        for letter in kind.rawValue {
            if letter.isUppercase, isInsideWord { code += "_" }
            code += letter.lowercased()
            isInsideWord = letter.isLowercase
        }
        return code
    }
}

/// The meaning of an answer to a refresh, as far as this one answer shows it.
///
/// The decision about the grant depends on more than one answer (is this a wave? was the grant ever proven?): the
/// engine's rules make it from the verdict.
package enum RefreshVerdict: Sendable {
    /// The grant is good.
    ///
    /// The value holds its access token.
    case granted(TokenResponse)
    /// An answer that is incomplete or contradicts itself: a 200 whose access token cannot be used, or new tokens with
    /// the status of an error. The fault is temporary, but the refresh token in the answer, if any, must be stored.
    case flawed(code: String, rotated: Secret?)
    /// A 200 without JSON: it came from a proxy, a captive portal or a broken endpoint.
    case notJSON
    /// A plain `invalid_grant`: the refresh token is dead.
    case invalidGrant
    /// Only the user can repair the grant, by signing in again.
    case signInRequired(code: String)
    /// An administrator or a policy blocks the grant, and can lift the block.
    case blocked(code: String)
    /// The client is at fault, not the grant.
    case clientFault(code: String)
    /// The client might be at fault, or the token might be a foreign token.
    case clientOrForeignToken(code: String)
    /// The client sends too many requests.
    case throttled(code: String)
    /// A temporary fault of the endpoint.
    case endpointFault(code: String)
    /// No answer came, for a temporary reason.
    ///
    /// `outcomeUnknown` is `true` if the request might have been processed, or might still be.
    case noAnswer(code: String, outcomeUnknown: Bool = true)
    /// The worker did not send the request.
    case notSent(code: String)
    /// The worker sent the request and stopped waiting. The request might have been processed.
    case givenUp(code: String)
    /// An answer with an unknown meaning.
    case unknown(code: String)

    /// `true` if the server might have processed the request, or might still be working on it.
    package var isOutcomeUnknown: Bool {
        switch self {
        case .noAnswer(_, let outcomeUnknown): outcomeUnknown
        case .givenUp: true
        default: false
        }
    }

    /// A short code, for logs and for the grant's reason.
    package var code: String {
        switch self {
        case .granted: "granted"
        case .notJSON: "not_json"
        case .invalidGrant: "invalid_grant"
        case .flawed(let code, _), .signInRequired(let code), .blocked(let code), .clientFault(let code),
            .clientOrForeignToken(let code), .throttled(let code), .endpointFault(let code), .noAnswer(let code, _),
            .notSent(let code), .givenUp(let code), .unknown(let code):
            code
        }
    }
}

/// The known error codes of the token endpoint and their meaning.
///
/// Sources: https://developers.google.com/identity/protocols/oauth2/native-app, RFC 6749 section 5.2, and the codes
/// that Chromium's and Google's own libraries distinguish.
enum ErrorCode {
    /// Returns the verdict on the code of a 400, 401 or 403, or `nil` for an undocumented code.
    static func verdict(on code: String, subtype: String?, sent: [Secret]) -> RefreshVerdict? {
        switch code {
        case "invalid_grant":
            // A Workspace session has ended. The refresh token is still alive
            // (https://support.google.com/a/answer/9368756).
            if let subtype, ["invalid_rapt", "rapt_required"].contains(subtype) {
                return .signInRequired(code: subtype)
            }
            return .invalidGrant
        case "invalid_dpop_proof", "use_dpop_nonce":
            return .signInRequired(code: code)
        case _ where code.hasPrefix("emm_"):
            // The phone must prove that it is managed, which a server cannot do. The text after a colon is a link for
            // the phone.
            return .signInRequired(code: name(String(code.prefix(while: { $0 != ":" })), without: sent) ?? "emm_error")
        case "admin_policy_enforced", "policy_enforced", "org_internal", "access_not_configured", "access_denied",
            "invalid_account":
            return .blocked(code: code)
        case "invalid_client", "deleted_client", "disabled_client", "invalid_scope", "restricted_client",
            "unsupported_grant_type":
            return .clientFault(code: code)
        case "unauthorized_client", "invalid_request":
            return .clientOrForeignToken(code: code)
        case "rate_limit_exceeded":
            return .throttled(code: code)
        case "internal_failure", "server_error", "temporarily_unavailable":
            return .endpointFault(code: code)
        default:
            return nil
        }
    }

    /// Returns an unlisted code in a form that can be logged and stored as a grant's reason, or `nil` if it is not a
    /// code, or repeats a secret that was sent.
    static func name(_ error: String, without sent: [Secret]) -> String? {
        error.isLowerCaseCode && !contains(error, sent) ? error : nil
    }

    /// Returns the code alone: old answers put a code and a text into one field, as in `internal_failure: Backend
    /// Error`.
    static func bare(_ error: String) -> String {
        error.hasPrefix("emm_") ? error : String(error.prefix(while: { $0 != ":" }))
    }
}

/// The text of an error, for logs.
extension ErrorCode {
    static let maximumBytes = 256
    /// Words in a human language are shorter than this.
    ///
    /// Tokens are longer.
    static let maximumWord = 40

    /// Returns the `error` and `error_description` of the answer, shortened.
    ///
    /// Words that are long enough to be a token are replaced by their length. If the text repeats a secret that was
    /// sent, all of it is omitted.
    static func excerpt(of body: JSONValue?, without sent: [Secret]) -> String? {
        guard let error = body?["error"]?.string else { return nil }
        var text = error
        if let description = body?["error_description"]?.string { text += ": " + description }
        guard !contains(text, sent) else { return "(an answer that repeats a secret of the request)" }
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        let readable = words.map { $0.utf8.count > maximumWord ? "(\($0.utf8.count) bytes)" : $0 }.joined(
            separator: " "
        )
        return readable.capped(at: maximumBytes)
    }

    /// Returns `true` if the text contains any 16 characters of a secret, so that a part of it is also found.
    static func contains(_ text: String, _ sent: [Secret]) -> Bool {
        sent.contains { contains(text, $0) }
    }

    private static func contains(_ text: String, _ secret: Secret) -> Bool {
        let token = Array(secret.reveal().utf8)
        let width = min(16, token.count)
        guard width > 0 else { return false }
        let haystack = Array(text.utf8)
        guard haystack.count >= width else { return false }
        let pieces = Set((0...(token.count - width)).map { ArraySlice(token[$0..<$0 + width]) })
        return (0...(haystack.count - width)).contains { pieces.contains(haystack[$0..<$0 + width]) }
    }
}

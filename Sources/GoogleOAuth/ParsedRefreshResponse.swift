internal import Base
package import Crypto
internal import HTTPClient

/// The verdict on an answer to a refresh, with the other data of the answer.
///
///     let parsed = ParsedRefreshResponse.reading(response, sent: [refreshToken])
///     parsed.verdict      // .failed(.throttled(code: "http_429"))
///     parsed.retryAfter   // 30 s
package struct ParsedRefreshResponse: Sendable {
    package var verdict: RefreshVerdict
    package var status: Int?
    /// The delay that the server asks for.
    package var retryAfter: Duration?
    /// Google's error text, shortened. It never contains the token that was sent.
    package var text: String?
}

/// Reads a response. Its form and error code decide, not its status alone.
extension ParsedRefreshResponse {
    /// Reads the response to a refresh. Texts that repeat a secret of `sent` are left out.
    package static func reading(_ response: RefreshResponse, sent: [Secret]) -> ParsedRefreshResponse {
        switch response {
        case .unread(.success(let response)): reading(response, sent: sent)
        case .unread(.failure(let failure)): reading(failure, sent: sent)
        case .read(let parsed): parsed
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
            text: ErrorCodeReader.excerpt(of: body, without: sent)
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
            ParsedRefreshResponse(verdict: .failed(.notSent(code: failure.shortCode)))
        case .cancelled, .shutDown:
            ParsedRefreshResponse(
                verdict: failure.outcomeUnknown
                    ? .failed(.givenUp(code: failure.shortCode))
                    : .failed(.notSent(code: failure.shortCode))
            )
        default:
            ParsedRefreshResponse(
                verdict: .failed(.noAnswer(code: failure.shortCode, outcomeUnknown: failure.outcomeUnknown)),
                text: failure.description
            )
        }
    }

    private static func verdict(status: Int, body: JSONValue?, sent: [Secret]) -> RefreshVerdict {
        status == 200 ? success(body) : .failed(failure(status: status, body: body, sent: sent))
    }

    private static func failure(status: Int, body: JSONValue?, sent: [Secret]) -> RefreshFailure {
        let error = body?["error"]?.string.map(ErrorCodeReader.bare)
        switch status {
        case 429:
            return .throttled(code: "http_429")
        case 400, 401, 403:
            if let error,
                let failure = ErrorCodeReader.failure(
                    of: error,
                    subtype: body?["error_subtype"]?.string,
                    description: body?["error_description"]?.string,
                    sent: sent
                )
            {
                return failure
            }
            if status == 403 { return .throttled(code: "http_403") }
            guard let error else {
                return body == nil ? .endpointFault(code: "http_\(status)") : .unknown(code: "http_\(status)")
            }
            return .unknown(code: ErrorCodeReader.name(error, without: sent) ?? "unlisted_error")
        case 300..<400, 408, 500..<600:
            return .endpointFault(code: "http_\(status)")
        default:
            return .unknown(code: "http_\(status)")
        }
    }

    private static func success(_ body: JSONValue?) -> RefreshVerdict {
        guard let body else { return .failed(.notJSON) }
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

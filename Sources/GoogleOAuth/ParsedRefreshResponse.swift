private import Base
package import Crypto
package import HTTPClient

/// The verdict on an answer to a refresh, with the other data of the answer.
package struct ParsedRefreshResponse: Sendable {
    package var verdict: RefreshVerdict
    package var status: Int?
    /// The delay that the server asks for.
    package var retryAfter: Duration?
    /// Google's error text, shortened; it never contains the token that was sent.
    package var text: String?
}

/// Reads a response. Its form and error code decide, not its status alone.
extension ParsedRefreshResponse {
    /// Reads the response to a refresh.
    ///
    /// Texts that repeat a secret of `sent` are left out.
    package static func reading(_ response: RawRefreshResponse, sent: [Secret]) -> ParsedRefreshResponse {
        switch response {
        case .response(let response): reading(response, sent: sent)
        case .failure(let failure): failure.partialResponse.flatMap(recoverRotatedToken) ?? reading(failure)
        case .answer(let answer): answer
        }
    }

    /// Reads the token endpoint's answer to a refresh.
    static func reading(_ response: HTTPResponse, sent: [Secret]) -> ParsedRefreshResponse {
        if response.status == 200, let tokens = response.body.withBytes({ TokenResponse(plain: $0) }) {
            return ParsedRefreshResponse(verdict: .granted(tokens), status: response.status)
        }
        let body = JSONValue.object(in: response.body.reveal())
        if body == nil, let recovered = recoverRotatedToken(from: response) { return recovered }
        let verdict = verdict(status: response.status, body: body, sent: sent)
        if case .granted = verdict { return ParsedRefreshResponse(verdict: verdict, status: response.status) }
        return ParsedRefreshResponse(
            verdict: verdict,
            status: response.status,
            retryAfter: response.retryAfter,
            text: ErrorText.excerpt(of: body, without: sent)
        )
    }

    /// Returns the rotated refresh token of a broken 200, if it arrived complete; `nil` for every other answer.
    ///
    /// The server has spent the token that was sent, so the new one is kept despite any other flaw: the body is longer
    /// or shorter than announced, is truncated, or continues after its end.
    private static func recoverRotatedToken(from response: HTTPResponse) -> ParsedRefreshResponse? {
        guard response.status == 200 else { return nil }
        let members = JSONValue.partialObject(in: response.body.reveal())
        guard let rotated = Token.optional(members?["refresh_token"]).value else { return nil }
        return ParsedRefreshResponse(verdict: .flawed(code: "flawed_answer", rotated: rotated), status: 200)
    }

    /// Returns the meaning of a request that got no answer.
    static func reading(_ failure: HTTPFailure) -> ParsedRefreshResponse {
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
    case response(HTTPResponse)
    /// The request failed without a complete answer.
    case failure(HTTPFailure)
    /// The verdict of an endpoint that does not use HTTP, such as a fake one in a test.
    case answer(ParsedRefreshResponse)

    init(_ result: Result<HTTPResponse, HTTPFailure>) {
        self =
            switch result {
            case .success(let response): .response(response)
            case .failure(let failure): .failure(failure)
            }
    }
}

extension HTTPFailure {
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

package import HTTPClient
private import JSON
package import Secrets

/// Reads an answer. Its form and error code decide, not its status alone.
extension ParsedRefreshResponse {
    /// Reads the reply to a refresh with the token `sent`.
    package static func reading(_ reply: RawRefreshResponse, sent: Secret) -> ParsedRefreshResponse {
        switch reply {
        case .response(let response): reading(response, sent: sent)
        case .failure(let failure): failure.partialAnswer.flatMap(salvage) ?? reading(failure)
        case .answer(let answer): answer
        }
    }

    /// Reads the token endpoint's answer to a refresh with the token `sent`.
    package static func reading(_ response: HTTPResponse, sent: Secret) -> ParsedRefreshResponse {
        let body = JSONValue.object(in: response.body.reveal())
        if body == nil, let salvaged = salvage(response) { return salvaged }
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
    /// The server has spent the token that was sent, so the new one is kept whatever else is wrong: the body is longer
    /// or shorter than announced, is truncated, or continues after its end.
    private static func salvage(_ response: HTTPResponse) -> ParsedRefreshResponse? {
        guard response.status == 200 else { return nil }
        let members = JSONValue.salvagedObject(in: response.body.reveal())
        guard let rotated = Token.optional(members?["refresh_token"]).value else { return nil }
        return ParsedRefreshResponse(verdict: .flawed(code: "flawed_answer", rotated: rotated), status: 200)
    }

    /// Returns the meaning of a request that got no answer.
    package static func reading(_ failure: HTTPFailure) -> ParsedRefreshResponse {
        switch failure.kind {
        case .withheld, .expired:
            ParsedRefreshResponse(verdict: .notSent(code: failure.shortCode))
        case .cancelled, .shutDown:
            ParsedRefreshResponse(
                verdict: failure.outcomeUnknown
                    ? .givenUp(code: failure.shortCode) : .notSent(code: failure.shortCode)
            )
        default: ParsedRefreshResponse(verdict: .noAnswer(code: failure.shortCode), text: failure.description)
        }
    }

    private static func verdict(status: Int, body: JSONValue?, sent: Secret) -> RefreshVerdict {
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

extension TokenResponse {
    /// The assumed lifetime if the answer does not name one: that of Google's access tokens.
    private static let usualLifetime: Int64 = 3600
    /// The longest plausible lifetime; a larger number is an error.
    private static let greatestLifetime: Int64 = 400 * 86_400
    /// The longest plausible lifetime of a refresh token.
    ///
    /// Google's time-based access ends within a year; ten years leave room for other servers.
    private static let greatestRefreshLifetime: Int64 = 3_660 * 86_400

    fileprivate init?(_ body: JSONValue, rotated: Secret?) {
        guard let accessToken = Token.required(body["access_token"]),
            let lifetime = Self.seconds(body["expires_in"], upTo: Self.greatestLifetime, absent: Self.usualLifetime),
            let type = Self.text(body["token_type"], absent: "Bearer"),
            type == "Bearer" || type.lowercased() == "bearer",
            let scope = Self.text(body["scope"], absent: ""), scope.utf8.count <= 16_384
        else { return nil }
        var refreshLifetime: Int64?
        if let told = body["refresh_token_expires_in"], told != .null {
            guard let seconds = Self.seconds(told, upTo: Self.greatestRefreshLifetime, absent: nil) else { return nil }
            refreshLifetime = seconds
        }
        self.init(
            accessToken: accessToken,
            lifetime: .seconds(lifetime),
            type: "Bearer",
            scope: scope.isEmpty ? nil : scope,
            rotated: rotated,
            refreshTokenLifetime: refreshLifetime.map { .seconds($0) },
            idToken: Token.optional(body["id_token"]).value
        )
    }

    private static func seconds(_ value: JSONValue?, upTo greatest: Int64, absent: Int64?) -> Int64? {
        guard let value, value != .null else { return absent }
        guard let seconds = value.integer, (1...greatest).contains(seconds) else { return nil }
        return seconds
    }

    private static func text(_ value: JSONValue?, absent: String) -> String? {
        guard let value, value != .null else { return absent }
        return value.string
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

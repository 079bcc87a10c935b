public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

extension AccountClient {
    /// Sends a request to the backend as the signed-in user: every call goes through this function.
    ///
    /// Adds the bearer. On 401 the tokens are refreshed, once for all callers, and the request is sent once more. A
    /// second 401 is returned like every other response. Redirects are returned, not followed.
    ///
    /// - Parameter request: A request to ``baseURL``'s server, with its body as data.
    /// - Returns: The body and the response, whatever its status.
    /// - Throws: ``AccountError/signedOut`` if the server has ended the session. The tokens are removed then. Otherwise
    ///   the error of a failed refresh.
    public func perform(_ request: URLRequest) async throws(AccountError) -> (Data, HTTPURLResponse) {
        try await perform(request, as: nil)
    }

    /// Sends a request as ``perform(_:)`` does, and only for the given account unless that is nil.
    func perform(_ request: URLRequest, as account: Int?) async throws(AccountError) -> (Data, HTTPURLResponse) {
        guard let url = request.url, Origin(url) == Origin(baseURL) else { throw .foreignAddress }
        guard request.httpBodyStream == nil else { throw .unusableBody }
        let bearer = try await bearer(for: account)
        let first = try await send(request, bearer: bearer.token)
        guard first.1.statusCode == 401 else { return first }
        let newer = try await self.bearer(for: bearer.account, refused: bearer.token)
        return try await send(request, bearer: newer.token)
    }

    /// An access token, and the number of the sign-in that it belongs to.
    struct Bearer {
        let token: String
        let account: Int
    }

    /// Returns an access token other than the refused one.
    func bearer(
        for expected: Int? = nil,
        refused: String? = nil
    ) async throws(AccountError) -> Bearer {
        let current = try await currentToken()
        let account = self.account
        if let expected, expected != account { throw .sessionReplaced }
        if let current, current != refused { return Bearer(token: current, account: account) }
        return Bearer(token: try await refreshed(), account: account)
    }

    private func send(_ request: URLRequest, bearer: String) async throws(AccountError) -> (Data, HTTPURLResponse) {
        var request = request
        request.setBearer(bearer)
        return try await transport(request, true)
    }

    /// Sends a call of this API through ``perform(_:)`` and decodes its response.
    func call<Value: Decodable>(
        _ type: Value.Type,
        _ method: String,
        _ path: String,
        body: (some Encodable & Sendable)? = Never?.none,
        redacting secrets: [String] = [],
        as account: Int? = nil
    ) async throws(AccountError) -> Value {
        let response = try await perform(try jsonRequest(method, path, body: body), as: account)
        return try Self.read(type, from: response, redacting: secrets)
    }

    /// Sends a call whose response only reports success.
    func callForSuccess(_ method: String, _ path: String, as account: Int? = nil) async throws(AccountError) {
        struct Content: Decodable {}
        _ = try await call(Content.self, method, path, as: account)
    }

    /// Returns a request of this API, without cookies and caches.
    func jsonRequest(
        _ method: String,
        _ path: String,
        body: (some Encodable)?
    ) throws(AccountError) -> URLRequest {
        var request = URLRequest(url: baseURL.appendingPathComponent(path))
        request.httpMethod = method
        request.cachePolicy = .reloadIgnoringLocalCacheData
        request.httpShouldHandleCookies = false
        request.setValue("application/json", forHTTPHeaderField: "Accept")
        guard let body else { return request }
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        do {
            request.httpBody = try JSONEncoder().encode(body)
        } catch {
            throw .unusableBody
        }
        return request
    }
}

extension URLRequest {
    mutating func setBearer(_ token: String) {
        setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
    }
}

/// The two forms of the backend's errors: `{"detail"}` and `{"error": {"code", "message"}}`.
private struct ErrorBody: Decodable {
    struct Named: Decodable {
        let code: String?
        let message: String?
        /// The accounts of the connection and of the tokens, if they differ.
        let expected: String?
        let found: String?
        /// The connection that has the account already.
        let connection: String?
    }

    let detail: String?
    let error: Named?
}

/// Decodes the backend's responses.
extension AccountClient {
    /// Returns the value of a successful response, and throws for any other one, with `secrets` removed from the text.
    static func read<Value: Decodable>(
        _ type: Value.Type,
        from response: (data: Data, http: HTTPURLResponse),
        redacting secrets: [String] = []
    ) throws(AccountError) -> Value {
        let status = response.http.statusCode
        guard (200..<300).contains(status) else {
            throw refusal(status: status, body: response.data, redacting: secrets)
        }
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            let text = try container.decode(String.self)
            guard let date = date(text) else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "not an ISO 8601 date")
            }
            return date
        }
        do {
            return try decoder.decode(type, from: response.data)
        } catch {
            throw .unreadableResponse(status: status)
        }
    }

    private static func refusal(status: Int, body data: Data, redacting secrets: [String]) -> AccountError {
        let body: ErrorBody
        do {
            body = try JSONDecoder().decode(ErrorBody.self, from: data)
        } catch {
            // The body is a proxy's page, or has another form: only the status is known.
            return .refused(status: status, code: nil, message: nil)
        }
        func clean(_ text: String?) -> String? {
            text.map { text in
                let cleaned = secrets.filter { !$0.isEmpty }.reduce(text) {
                    $0.replacingOccurrences(of: $1, with: "[token]")
                }
                return String(cleaned.prefix(200))
            }
        }
        let code = clean(body.error?.code)
        let connectionError = AccountError.connection(
            code: code,
            expected: clean(body.error?.expected),
            found: clean(body.error?.found),
            connection: clean(body.error?.connection)
        )
        if let connectionError { return connectionError }
        return .refused(status: status, code: code, message: clean(body.detail ?? body.error?.message))
    }

    /// Parses a time with or without a fraction, or a date alone. Without a zone it is UTC, as the backends of this API
    /// write it.
    static func date(_ text: String) -> Date? {
        var text = text
        if let dot = text.firstIndex(of: ".") {
            let rest = text[text.index(after: dot)...].drop { $0.isASCII && $0.isNumber }
            text = text[..<dot] + String(rest)
        }
        let formatter = ISO8601DateFormatter()
        return formatter.date(from: text) ?? formatter.date(from: text + "Z")
            ?? formatter.date(from: text + "T00:00:00Z")
    }
}

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
        guard let url = request.url, Origin(url) == Origin(baseURL) else { throw .foreignAddress }
        guard request.httpBodyStream == nil else { throw .unusableBody }
        guard let pair = try cache.pair() else { throw .signedOut }
        let account = self.account
        var token: String
        if let accessToken = pair.accessToken {
            token = accessToken
        } else {
            token = try await refreshed()
        }
        let first = try await send(request, bearer: token)
        guard first.1.statusCode == 401 else { return first }
        guard let current = try cache.pair() else { throw .signedOut }
        guard account == self.account else { throw .sessionReplaced }
        if let newer = current.accessToken, newer != token {
            token = newer
        } else {
            token = try await refreshed()
        }
        return try await send(request, bearer: token)
    }

    private func send(_ request: URLRequest, bearer: String) async throws(AccountError) -> (Data, HTTPURLResponse) {
        var request = request
        request.setBearer(bearer)
        return try await transport.send(request)
    }

    /// Sends a call of this API through ``perform(_:)`` and decodes its response.
    func call<Value: Decodable>(
        _ type: Value.Type,
        _ method: String,
        _ path: String,
        body: (some Encodable & Sendable)? = Never?.none,
        redacting secrets: [String] = []
    ) async throws(AccountError) -> Value {
        let response = try await perform(try jsonRequest(method, path, body: body))
        return try ResponseDecoder.read(type, from: response, redacting: secrets)
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

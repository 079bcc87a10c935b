package import HTTPClient
private import JSON
package import Secrets

/// Google's endpoints as the engine uses them.
///
/// The engine parses refresh replies later, in batches.
package protocol TokenEndpoint: Sendable {
    /// Sends refresh requests; returns for each one the closure that cancels it.
    func refresh(_ questions: [RefreshSubmission]) -> [@Sendable () -> Void]

    /// Revokes a grant by one of its tokens.
    ///
    /// `mayStillSend` is called immediately before the request is sent; if it returns `false`, nothing is sent. It
    /// blocks every other request, so it must be quick.
    func revoke(_ token: Secret, mayStillSend: @escaping @Sendable () -> Bool) async -> RevocationResponse

    /// Returns the account that an access token belongs to.
    func userInfo(accessToken: Secret) async throws(AccountLookupFailure) -> UserInfo
}

/// The outcome of a request to revoke a grant.
package enum RevocationResponse: Sendable, Hashable {
    /// The grant is revoked, or was before.
    case done
    case failed(AccountLookupFailure)
    /// The worker did not send the request.
    case notSent(code: String)
}

/// A refresh of one grant, to be sent to the token endpoint.
///
/// Its closures block every other request, so they must be quick.
package struct RefreshSubmission: Sendable {
    package let token: Secret
    package let client: OAuthClientCredentials
    /// Called immediately before the request is sent; if it returns `false`, nothing is sent.
    package let mayStillSend: @Sendable () -> Bool
    /// Called once with the reply, possibly before ``TokenEndpoint/refresh(_:)`` returns.
    package let receive: @Sendable (RawRefreshResponse) -> Void

    package init(
        token: Secret,
        client: OAuthClientCredentials,
        mayStillSend: @escaping @Sendable () -> Bool,
        receive: @escaping @Sendable (RawRefreshResponse) -> Void
    ) {
        self.token = token
        self.client = client
        self.mayStillSend = mayStillSend
        self.receive = receive
    }
}

/// Google's endpoints over HTTP.
package struct GoogleOAuthAPI: TokenEndpoint {
    private let http: HTTPClient
    private let refreshes: RequestPattern
    private let revocations: RequestPattern
    private let inquiries: RequestPattern
    private let userinfo: Endpoint

    package init(http: HTTPClient, endpoints: GoogleEndpoints) {
        self.http = http
        refreshes = .form(to: endpoints.token)
        revocations = .form(to: endpoints.revocation)
        inquiries = .form(to: endpoints.tokeninfo)
        userinfo = endpoints.userinfo
    }

    package func refresh(_ questions: [RefreshSubmission]) -> [@Sendable () -> Void] {
        let submissions = questions.map { question in
            HTTPClient.Submission(
                RefreshRequest.make(token: question.token, client: question.client, pattern: refreshes),
                beforeSend: question.mayStillSend,
                completion: { question.receive(RawRefreshResponse($0)) }
            )
        }
        return http.submit(submissions).map { pending in { pending.cancel() } }
    }

    package func revoke(
        _ token: Secret,
        mayStillSend: @escaping @Sendable () -> Bool
    ) async -> RevocationResponse {
        do throws(HTTPFailure) {
            let response = try await http.send(HTTPRequest("token", token, revocations), beforeSend: mayStillSend)
            let error = JSONValue.object(in: response.body.reveal())?["error"]?.string
            switch (response.status, error) {
            case (200, _), (400, "invalid_token"): return .done
            default: return .failed(.unavailable(code: "http_\(response.status)"))
            }
        } catch  where error.kind == .withheld {
            return .notSent(code: error.shortCode)
        } catch {
            return .failed(.unavailable(code: error.shortCode))
        }
    }

    /// Returns the account that an access token belongs to.
    package func userInfo(accessToken: Secret) async throws(AccountLookupFailure) -> UserInfo {
        let request = HTTPRequest(
            method: .get,
            endpoint: userinfo,
            headers: [("Authorization", "Bearer \(accessToken.reveal())"), ("Accept", "application/json")]
        )
        guard let info = UserInfo(try await lookUp(request)) else { throw .unavailable(code: "flawed_answer") }
        return info
    }

    /// Returns the client, scopes and expiry of an access token.
    ///
    /// The token is sent in the body, which proxies do not log.
    package func tokenInfo(accessToken: Secret) async throws(AccountLookupFailure) -> TokenInfo {
        let request = HTTPRequest("access_token", accessToken, inquiries)
        guard let info = TokenInfo(try await lookUp(request)) else { throw .unavailable(code: "flawed_answer") }
        return info
    }

    private func lookUp(_ request: HTTPRequest) async throws(AccountLookupFailure) -> JSONValue {
        let response: HTTPResponse
        do throws(HTTPFailure) {
            response = try await http.send(request)
        } catch {
            throw .unavailable(code: error.shortCode)
        }
        switch response.status {
        case 200:
            guard let body = JSONValue.object(in: response.body.reveal()) else { throw .unavailable(code: "not_json") }
            return body
        case 400, 401:
            throw .refused
        default:
            throw .unavailable(code: "http_\(response.status)")
        }
    }
}

package import HTTPClient
private import JSON
package import Secrets

/// Google's token endpoint, as the engine sees it: refresh tokens go in, and what comes back is read by whoever has the time.
package protocol TokenEndpoint: Sendable {
    /// Asks for fresh access tokens; answers for each question what gives it up.
    func refresh(_ questions: [RefreshQuestion]) -> [@Sendable () -> Void]

    /// Asks to revoke a grant by one of its tokens.
    ///
    /// `mayStillSend` is called immediately before the request leaves; when it returns `false`, nothing is sent. It holds up
    /// every other request, so it must be quick.
    func revoke(_ token: Secret, mayStillSend: @escaping @Sendable () -> Bool) async -> RevocationReply

    /// Asks whom an access token belongs to.
    func userInfo(accessToken: Secret) async throws(LookupFailure) -> UserInfo
}

/// The outcome of a request to revoke a grant.
package enum RevocationReply: Sendable, Hashable {
    /// The grant is revoked, or was before.
    case done
    case failed(LookupFailure)
    /// The worker did not send the request.
    case notSent(code: String)
}

/// What is asked of a token endpoint for one grant.
///
/// Its functions hold up every other request, so they must be quick.
package struct RefreshQuestion: Sendable {
    package let token: Secret
    package let client: OAuthClient
    /// Called immediately before the request leaves; when it says no, nothing is sent.
    package let mayStillSend: @Sendable () -> Bool
    /// Called once, whatever comes of it, maybe before the asking returns.
    package let receive: @Sendable (RefreshReply) -> Void

    package init(
        token: Secret,
        client: OAuthClient,
        mayStillSend: @escaping @Sendable () -> Bool,
        receive: @escaping @Sendable (RefreshReply) -> Void
    ) {
        self.token = token
        self.client = client
        self.mayStillSend = mayStillSend
        self.receive = receive
    }
}

/// Google's endpoints over HTTP.
package struct GoogleAccounts: TokenEndpoint {
    private let http: HTTPClient
    private let refreshes: RequestPattern
    private let revocations: RequestPattern
    private let inquiries: RequestPattern
    private let userinfo: Endpoint

    package init(http: HTTPClient, endpoints: Endpoints) {
        self.http = http
        refreshes = .form(to: endpoints.token)
        revocations = .form(to: endpoints.revocation)
        inquiries = .form(to: endpoints.tokeninfo)
        userinfo = endpoints.userinfo
    }

    package func refresh(_ questions: [RefreshQuestion]) -> [@Sendable () -> Void] {
        let submissions = questions.map { question in
            HTTPClient.Submission(
                RefreshRequest.make(token: question.token, client: question.client, pattern: refreshes),
                beforeSend: question.mayStillSend,
                completion: { question.receive(RefreshReply($0)) }
            )
        }
        return http.submit(submissions).map { pending in { pending.cancel() } }
    }

    package func revoke(
        _ token: Secret,
        mayStillSend: @escaping @Sendable () -> Bool
    ) async -> RevocationReply {
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

    /// Asks whom an access token belongs to.
    package func userInfo(accessToken: Secret) async throws(LookupFailure) -> UserInfo {
        let request = HTTPRequest(
            method: .get,
            endpoint: userinfo,
            headers: [("Authorization", "Bearer \(accessToken.reveal())"), ("Accept", "application/json")]
        )
        guard let info = UserInfo(try await lookUp(request)) else { throw .unavailable(code: "flawed_answer") }
        return info
    }

    /// Asks whom an access token was issued to.
    ///
    /// The token goes in the body, which no proxy logs.
    package func tokenInfo(accessToken: Secret) async throws(LookupFailure) -> TokenInfo {
        let request = HTTPRequest("access_token", accessToken, inquiries)
        guard let info = TokenInfo(try await lookUp(request)) else { throw .unavailable(code: "flawed_answer") }
        return info
    }

    private func lookUp(_ request: HTTPRequest) async throws(LookupFailure) -> JSONValue {
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

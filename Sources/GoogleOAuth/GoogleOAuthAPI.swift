private import Base
package import Crypto
package import HTTPClient

/// Google's endpoints over HTTP.
package struct GoogleOAuthAPI: TokenEndpoint {
    private let http: HTTPClient
    private let refreshPattern: RequestPattern
    private let revocationPattern: RequestPattern
    private let tokeninfoPattern: RequestPattern
    private let userinfo: Endpoint

    package init(http: HTTPClient, endpoints: GoogleEndpoints) {
        self.http = http
        refreshPattern = .form(to: endpoints.token)
        revocationPattern = .form(to: endpoints.revocation)
        tokeninfoPattern = .form(to: endpoints.tokeninfo)
        userinfo = endpoints.userinfo
    }

    package func refresh(_ submissions: [RefreshSubmission]) -> [@Sendable () -> Void] {
        let requests = submissions.map { submission in
            HTTPClient.Submission(
                RefreshRequest.make(token: submission.token, client: submission.client, pattern: refreshPattern),
                beforeSend: submission.mayStillSend,
                completion: { submission.receive(RawRefreshResponse($0)) }
            )
        }
        return http.submit(requests).map { pending in { pending.cancel() } }
    }

    package func revoke(
        _ token: Secret,
        mayStillSend: @escaping @Sendable () -> Bool
    ) async -> RevocationResponse {
        do throws(HTTPFailure) {
            let response = try await http.send(HTTPRequest("token", token, revocationPattern), beforeSend: mayStillSend)
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
        let request = HTTPRequest("access_token", accessToken, tokeninfoPattern)
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

package import Base
package import Crypto
package import HTTPClient

/// Google's endpoints over HTTP.
package struct GoogleOAuthAPI: Google {
    private let http: HTTPClient
    private let refreshPattern: RequestPattern
    private let revocationPattern: RequestPattern
    private let tokeninfoPattern: RequestPattern
    private let userinfo: Endpoint
    private let prover: Prover
    private let time: any TimeSource

    /// `time` is this machine's clock, which gives proofs their time.
    package init(http: HTTPClient, endpoints: GoogleEndpoints, time: any TimeSource = SystemTime()) {
        self.http = http
        self.time = time
        prover = Prover(endpoint: endpoints.token, time: time)
        refreshPattern = .form(to: endpoints.token)
        revocationPattern = .form(to: endpoints.revocation)
        tokeninfoPattern = .form(to: endpoints.tokeninfo)
        userinfo = endpoints.userinfo
    }

    package func refresh(_ submissions: [RefreshSubmission]) -> [@Sendable () -> Void] {
        var transfers: [HTTPTransfer] = []
        var cancellations: [@Sendable () -> Void] = []
        transfers.reserveCapacity(submissions.count)
        cancellations.reserveCapacity(submissions.count)
        for submission in submissions {
            if let key = submission.bindingKey {
                let refresh = BoundRefresh(submission, boundTo: key, http: http, prover: prover)
                if let transfer = refresh.begin() { transfers.append(transfer) }
                cancellations.append { refresh.cancel() }
                continue
            }
            let transfer = HTTPTransfer(
                HTTPRequest(refreshing: submission.token, client: submission.client, pattern: refreshPattern),
                beforeSend: submission.mayStillSend,
                completion: { submission.receive(.unread($0)) }
            )
            transfers.append(transfer)
            cancellations.append { [http] in http.cancel(transfer) }
        }
        http.submit(transfers)
        return cancellations
    }

    package func exchange(
        _ code: Secret,
        client: OAuthClientCredentials,
        boundTo key: BindingKey?
    ) async -> CodeExchange {
        let sent = [code] + [client.secret].compactMap(\.self)
        do throws(HTTPError) {
            guard let key else {
                let request = HTTPRequest(exchanging: code, client: client, pattern: refreshPattern)
                let response = try await http.send(request, deadline: CodeExchange.deadline)
                return CodeExchange(.reading(.unread(.success(response)), sent: sent))
            }
            return try await exchangeWithProof(code, client: client, key: key, sent: sent)
        } catch {
            return CodeExchange(.reading(.unread(.failure(error)), sent: sent))
        }
    }

    /// Exchanges a code with a proof, and once more with the nonce that the endpoint asks for.
    ///
    /// A challenge does not spend the code (RFC 9449, section 8).
    private func exchangeWithProof(
        _ code: Secret,
        client: OAuthClientCredentials,
        key: BindingKey,
        sent: [Secret]
    ) async throws(HTTPError) -> CodeExchange {
        let subject = ProofSubject(exchanging: code, with: key, clientID: client.id)
        let deadline = time.sinceBoot + CodeExchange.deadline
        var challenge: ProofNonce?
        while true {
            let pattern = prover.pattern(proving: subject, answering: challenge)
            let request = HTTPRequest(exchanging: code, client: client, pattern: pattern)
            let response = try await send(request, until: deadline, proving: subject)
            switch prover.read(response, isAnswerToChallenge: challenge != nil, sent: sent) {
            case .challenge(let nonce): challenge = nonce
            case .response(let parsed): return CodeExchange(parsed)
            }
        }
    }

    private func send(
        _ request: HTTPRequest,
        until deadline: BootInstant,
        proving subject: ProofSubject
    ) async throws(HTTPError) -> HTTPResponse {
        let response = try await http.send(request, deadline: deadline - time.sinceBoot)
        prover.keepNonce(of: response, for: subject)
        return response
    }

    package func revoke(_ token: Secret, mayStillSend: @escaping @Sendable () -> Bool) async -> RevocationResponse {
        do throws(HTTPError) {
            let response = try await http.send(
                HTTPRequest(token, named: "token", pattern: revocationPattern),
                beforeSend: mayStillSend
            )
            let body = response.body.reveal()
            let answer = JSONValue.object(in: body)
            // A page in HTML comes from a proxy or a login page before the server.
            let isPage = body.first { ![0x20, 0x09, 0x0a, 0x0d].contains($0) } == UInt8(ascii: "<")
            switch (response.status, answer?["error"]?.string) {
            case (200, _) where !isPage, (400, "invalid_token"): return .done
            default: return .failed(.unavailable(code: "http_\(response.status)"))
            }
        } catch  where error.kind == .withheld {
            return .notSent(code: error.shortCode)
        } catch {
            return .failed(.unavailable(code: error.shortCode))
        }
    }

    package func userInfo(accessToken: Secret) async throws(LookupError) -> UserInfo {
        let request = HTTPRequest(
            method: .get,
            endpoint: userinfo,
            headers: [("Authorization", "Bearer \(accessToken.reveal())"), ("Accept", "application/json")]
        )
        guard let info = UserInfo(try await http.lookUp(request).body) else { throw .flawed }
        return info
    }

    /// Sends the token in the body, which proxies do not log.
    package func tokenInfo(accessToken: Secret) async throws(LookupError) -> TokenInfo {
        let request = HTTPRequest(accessToken, named: "access_token", pattern: tokeninfoPattern)
        guard let info = TokenInfo(try await http.lookUp(request).body) else { throw .flawed }
        return info
    }
}

extension HTTPClient {
    /// Returns the JSON object of a good answer, and its header `Cache-Control`.
    func lookUp(
        _ request: HTTPRequest,
        deadline: Duration? = nil
    ) async throws(LookupError) -> (body: JSONValue, cacheControl: String?) {
        let response: HTTPResponse
        do throws(HTTPError) {
            response = try await send(request, deadline: deadline)
        } catch {
            throw .unavailable(code: error.shortCode)
        }
        switch response.status {
        case 200:
            guard let body = JSONValue.object(in: response.body.reveal()) else { throw .unavailable(code: "not_json") }
            return (body, response.header("Cache-Control"))
        case 400, 401:
            throw .refused
        default:
            throw .unavailable(code: "http_\(response.status)")
        }
    }
}

extension HTTPRequest {
    /// Makes the refresh request of a public client
    /// (https://developers.google.com/identity/protocols/oauth2/native-app).
    ///
    /// It does not name a scope, which could only narrow the grant or fail. It has a secret only for clients that have
    /// one. An iOS client does not. `pattern` comes from ``HTTPClient/RequestPattern/form(to:)``.
    package init(refreshing token: Secret, client: OAuthClientCredentials, pattern: RequestPattern) {
        var form = FormBody()
        form.append("client_id", client.id)
        token.withBytes { form.append("refresh_token", $0) }
        form.append("grant_type", "refresh_token")
        if let secret = client.secret { secret.withBytes { form.append("client_secret", $0) } }
        self.init(pattern, body: form.finish())
    }

    /// Makes the request that exchanges the `serverAuthCode` of Google's SDK for iOS
    /// (https://developers.google.com/identity/sign-in/ios/offline-access).
    ///
    /// The code was not sent to a web page, so the redirect address is empty.
    package init(exchanging code: Secret, client: OAuthClientCredentials, pattern: RequestPattern) {
        var form = FormBody()
        form.append("client_id", client.id)
        code.withBytes { form.append("code", $0) }
        form.append("grant_type", "authorization_code")
        form.append("redirect_uri", "")
        if let secret = client.secret { secret.withBytes { form.append("client_secret", $0) } }
        self.init(pattern, body: form.finish())
    }

    /// Makes a POST with one secret.
    init(_ secret: Secret, named name: String, pattern: RequestPattern) {
        var form = FormBody()
        secret.withBytes { form.append(name, $0) }
        self.init(pattern, body: form.finish())
    }
}

extension RequestPattern {
    /// Makes the pattern of a form POST with a JSON answer.
    package static func form(to endpoint: Endpoint) -> RequestPattern {
        RequestPattern(
            method: .post,
            endpoint: endpoint,
            headers: [("Content-Type", FormBody.contentType), ("Accept", "application/json")]
        )
    }
}

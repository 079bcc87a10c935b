package import Crypto
package import HTTPClient

/// The refresh request of a public client (https://developers.google.com/identity/protocols/oauth2/native-app).
///
/// It does not name a scope, which could only narrow the grant or fail. It has a secret only for clients that have one;
/// an iOS client does not.
package enum RefreshRequest {
    /// Makes the request.
    ///
    /// `pattern` comes from ``HTTPClient/RequestPattern/form(to:)``.
    package static func make(token: Secret, client: OAuthClientCredentials, pattern: RequestPattern) -> HTTPRequest {
        var form = FormBody()
        form.append("client_id", client.id)
        token.withBytes { form.append("refresh_token", $0) }
        form.append("grant_type", "refresh_token")
        if let secret = client.secret { secret.withBytes { form.append("client_secret", $0) } }
        return HTTPRequest(pattern, body: form.finish())
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

extension HTTPRequest {
    /// Makes a POST with one secret.
    init(_ name: String, _ secret: Secret, _ pattern: RequestPattern) {
        var form = FormBody()
        secret.withBytes { form.append(name, $0) }
        self.init(pattern, body: form.finish())
    }
}

package import HTTPClient
package import Secrets

/// The refresh request of a public client (https://developers.google.com/identity/protocols/oauth2/native-app).
///
/// It names neither a scope, which could only narrow or fail, nor a secret, which an iOS client does not have.
package enum RefreshRequest {
    /// `pattern` is that of ``HTTPClient/RequestPattern/form(to:)``.
    package static func make(token: Secret, client: OAuthClient, pattern: RequestPattern) -> HTTPRequest {
        var form = FormBody()
        form.append("client_id", client.id)
        token.withBytes { form.append("refresh_token", $0) }
        form.append("grant_type", "refresh_token")
        if let secret = client.secret { secret.withBytes { form.append("client_secret", $0) } }
        return HTTPRequest(pattern, body: form.finish())
    }
}

extension RequestPattern {
    /// POSTs of form fields that are answered in JSON.
    package static func form(to endpoint: Endpoint) -> RequestPattern {
        RequestPattern(
            method: .post,
            endpoint: endpoint,
            headers: [("Content-Type", FormBody.contentType), ("Accept", "application/json")]
        )
    }
}

extension HTTPRequest {
    /// A POST of one secret.
    init(_ name: String, _ secret: Secret, _ pattern: RequestPattern) {
        var form = FormBody()
        secret.withBytes { form.append(name, $0) }
        self.init(pattern, body: form.finish())
    }
}

package import HTTPClient
package import Secrets

/// The refresh request of a public client (https://developers.google.com/identity/protocols/oauth2/native-app).
///
/// It names neither a scope, which could only narrow or fail, nor a secret, which an iOS client does not have.
package enum RefreshRequest {
    package static func make(token: Secret, client: OAuthClient, endpoint: Endpoint) -> HTTPRequest {
        var form = FormBody()
        form.append("client_id", client.id)
        token.withBytes { form.append("refresh_token", $0) }
        form.append("grant_type", "refresh_token")
        if let secret = client.secret { secret.withBytes { form.append("client_secret", $0) } }
        return HTTPRequest(form: form, to: endpoint)
    }
}

extension HTTPRequest {
    /// A POST of form fields.
    init(form: consuming FormBody, to endpoint: Endpoint) {
        self.init(
            method: .post,
            url: endpoint.url,
            headers: [("Content-Type", FormBody.contentType), ("Accept", "application/json")],
            body: form.finish()
        )
    }

    /// A POST of one secret.
    init(_ name: String, _ secret: Secret, to endpoint: Endpoint) {
        var form = FormBody()
        secret.withBytes { form.append(name, $0) }
        self.init(form: form, to: endpoint)
    }
}

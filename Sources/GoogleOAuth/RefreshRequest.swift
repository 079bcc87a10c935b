package import HTTPClient
package import Secrets

/// The refresh request of a public client (https://developers.google.com/identity/protocols/oauth2/native-app).
///
/// It names neither a scope, which could only narrow or fail, nor a secret, which an iOS client does not have.
package enum RefreshRequest {
    package static func make(token: Secret, client: OAuthClient, endpoint: Endpoint) -> HTTPRequest {
        var fields: [(String, [UInt8])] = [
            ("client_id", Array(client.id.utf8)),
            ("refresh_token", token.bytes),
            ("grant_type", Array("refresh_token".utf8)),
        ]
        if let secret = client.secret { fields.append(("client_secret", secret.bytes)) }
        return .form(fields, to: endpoint)
    }
}

extension HTTPRequest {
    /// A POST of form fields.
    static func form(_ fields: [(String, [UInt8])], to endpoint: Endpoint) -> HTTPRequest {
        HTTPRequest(
            method: .post,
            url: endpoint.url,
            headers: [
                ("Content-Type", "application/x-www-form-urlencoded"),
                ("Accept", "application/json"),
            ],
            body: FormBody.encode(fields)
        )
    }
}

extension Secret {
    /// The bytes, for a request's body.
    var bytes: [UInt8] {
        withBytes { bytes in (0..<bytes.byteCount).map { bytes.unsafeLoad(fromByteOffset: $0, as: UInt8.self) } }
    }
}

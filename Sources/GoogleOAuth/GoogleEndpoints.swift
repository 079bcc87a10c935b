package import HTTPClient
package import Secrets

/// The URLs of Google's endpoints; the defaults come from Google's discovery document
/// (https://accounts.google.com/.well-known/openid-configuration).
package struct GoogleEndpoints: Hashable, Sendable {
    package var token: Endpoint
    package var userinfo: Endpoint
    package var tokeninfo: Endpoint
    package var revocation: Endpoint

    package init(token: Endpoint, userinfo: Endpoint, tokeninfo: Endpoint, revocation: Endpoint) {
        self.token = token
        self.userinfo = userinfo
        self.tokeninfo = tokeninfo
        self.revocation = revocation
    }
}

/// The OAuth client that sends the requests.
package struct OAuthClientCredentials: Sendable {
    package var id: String
    /// Set only for confidential clients of other servers: Google's iOS clients do not have one.
    package var secret: Secret?

    package init(id: String, secret: Secret? = nil) {
        self.id = id
        self.secret = secret
    }
}

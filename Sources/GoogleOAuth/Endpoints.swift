package import HTTPClient
package import Secrets

/// Where the questions go: Google's discovery values unless configured otherwise
/// (https://accounts.google.com/.well-known/openid-configuration).
package struct Endpoints: Hashable, Sendable {
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

/// Whom the questions are asked as.
package struct OAuthClient: Sendable {
    package var id: String
    /// Only for a confidential client of another server: Google's iOS clients have none.
    package var secret: Secret?

    package init(id: String, secret: Secret? = nil) {
        self.id = id
        self.secret = secret
    }
}

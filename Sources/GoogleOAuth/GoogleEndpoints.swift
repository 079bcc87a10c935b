package import HTTPClient

/// The URLs of Google's endpoints.
///
/// The defaults come from Google's discovery document (https://accounts.google.com/.well-known/openid-configuration).
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

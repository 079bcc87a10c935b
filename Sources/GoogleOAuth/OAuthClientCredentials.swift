import Base
package import Crypto

/// The id, and the secret if there is one, of the OAuth client that sends the requests.
package struct OAuthClientCredentials: Sendable {
    package let id: String
    /// Set only for confidential clients of other servers: Google's iOS clients do not have one.
    let secret: Secret?

    package init(id: String, secret: Secret? = nil) {
        self.id = id
        self.secret = secret
    }
}

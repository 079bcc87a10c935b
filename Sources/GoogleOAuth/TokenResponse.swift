package import Crypto

/// The content of a good answer to a refresh.
package struct TokenResponse: Sendable {
    package var accessToken: Secret
    package var lifetime: Duration
    package var type: String
    /// The scopes of this access token, separated by spaces, if the answer names them.
    package var scope: String?
    /// The refresh token that replaces the one that was sent, if the server rotates.
    package var rotated: Secret?
    /// The remaining lifetime of the refresh token, if the answer gives it.
    package var refreshTokenLifetime: Duration?
    /// The ID token that Google adds if the grant has the scope `openid`.
    package var idToken: Secret?

    package init(
        accessToken: Secret,
        lifetime: Duration,
        type: String,
        scope: String? = nil,
        rotated: Secret? = nil,
        refreshTokenLifetime: Duration? = nil,
        idToken: Secret? = nil
    ) {
        self.accessToken = accessToken
        self.lifetime = lifetime
        self.type = type
        self.scope = scope
        self.rotated = rotated
        self.refreshTokenLifetime = refreshTokenLifetime
        self.idToken = idToken
    }
}

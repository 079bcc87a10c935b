package import Base

/// The sealed tokens of a successful refresh.
package struct RefreshedTokens: Hashable, Sendable {
    package var accessToken: Grant.AccessToken
    /// The refresh token that replaces the stored one, if the server rotates.
    package var rotated: Grant.RefreshToken?
    package var scope: String?
    /// The end of the refresh token's own lifetime, if the answer gives it.
    package var refreshTokenExpiresAt: Timestamp?
    /// The longest pause until the next refresh, if the answer gives it. It is not stored: the due time follows from it.
    package var refreshTokenTimeout: Duration?
    /// The digest by which ``IssuedTokens`` recognises the access token.
    package var digest: [UInt8]?

    package init(
        accessToken: Grant.AccessToken,
        rotated: Grant.RefreshToken? = nil,
        scope: String? = nil,
        refreshTokenExpiresAt: Timestamp? = nil,
        refreshTokenTimeout: Duration? = nil,
        digest: [UInt8]? = nil
    ) {
        self.accessToken = accessToken
        self.rotated = rotated
        self.scope = scope
        self.refreshTokenExpiresAt = refreshTokenExpiresAt
        self.refreshTokenTimeout = refreshTokenTimeout
        self.digest = digest
    }
}

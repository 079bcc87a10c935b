package import Clocks

/// The tokens and data that an app or an import brings for one user, already sealed for the grant's id.
package struct IncomingTokens: Hashable, Sendable {
    package var clientID: String
    package var owner: Grant.Owner
    package var scope: String?
    package var refreshToken: Grant.RefreshToken?
    package var accessToken: Grant.AccessToken?

    package init(
        clientID: String,
        owner: Grant.Owner = Grant.Owner(),
        scope: String? = nil,
        refreshToken: Grant.RefreshToken? = nil,
        accessToken: Grant.AccessToken? = nil
    ) {
        self.clientID = clientID
        self.owner = owner
        self.scope = scope
        self.refreshToken = refreshToken
        self.accessToken = accessToken
    }
}

/// The sealed tokens of a successful refresh.
package struct RefreshedTokens: Hashable, Sendable {
    package var accessToken: Grant.AccessToken
    /// The refresh token that replaces the stored one, if the server rotates.
    package var rotated: Grant.RefreshToken?
    package var scope: String?
    /// The end of the refresh token's own lifetime, if the answer gives it.
    package var refreshTokenExpiresAt: Timestamp?
    /// The digest by which ``IssuedTokens`` recognises the access token.
    package var digest: [UInt8]?

    package init(
        accessToken: Grant.AccessToken,
        rotated: Grant.RefreshToken? = nil,
        scope: String? = nil,
        refreshTokenExpiresAt: Timestamp? = nil,
        digest: [UInt8]? = nil
    ) {
        self.accessToken = accessToken
        self.rotated = rotated
        self.scope = scope
        self.refreshTokenExpiresAt = refreshTokenExpiresAt
        self.digest = digest
    }
}

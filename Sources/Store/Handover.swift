package import Clocks

/// What an app or an import hands over for one user: tokens already sealed for the grant's id.
package struct Handover: Hashable, Sendable {
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

/// What a successful refresh brought, sealed.
package struct RefreshedTokens: Hashable, Sendable {
    package var accessToken: Grant.AccessToken
    /// The refresh token that replaces the stored one, where the server rotates.
    package var rotated: Grant.RefreshToken?
    package var scope: String?
    /// When the refresh token dies of itself, where the answer says so.
    package var refreshTokenExpiresAt: Timestamp?
    /// What ``IssuedTokens`` knows the access token by.
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

package import Base

/// The tokens and data that an app or an import brings for one user, already sealed for the grant's id.
package struct IncomingTokens: Hashable, Sendable {
    var clientID: String
    package var owner: Grant.Owner
    package var scope: String?
    package var refreshToken: Grant.RefreshToken?
    package var accessToken: Grant.AccessToken?
    /// The latest due time of the first refresh, if the refresh token must be used by then, or `nil` if it need not.
    package var latestDueAt: Timestamp?
    /// The digest of the access token if this program got it from Google, so that it is no proof of who signs in.
    package var issuedDigest: [UInt8]?
    /// The labels of the connection, or `nil` to leave them as they are.
    package var labels: ConnectionLabels?

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

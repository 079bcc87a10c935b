package import Base
package import Storage

/// A claim on a grant, with the grant's state at the time of the claim.
package struct RefreshAttempt: Hashable, Sendable {
    package var grant: GrantID
    package var clientID: String
    package var claim: Int64
    /// The fence: the result is about this version of the refresh token.
    package var generation: Int64
    /// The grant's `lastAttemptAt` at the claim; a different value means a change while the request was in flight.
    package var lastAttemptAt: Timestamp?

    /// The refresh token that was stored at the claim; its answer counts while it is still the stored one.
    package var refreshToken: Grant.RefreshToken?
    /// `true` if the result of an earlier claim on the grant was never committed, so that an answer may be lost.
    package var followsUnfinishedClaim: Bool

    package init(
        grant: GrantID,
        clientID: String,
        claim: Int64,
        generation: Int64,
        lastAttemptAt: Timestamp? = nil,
        refreshToken: Grant.RefreshToken? = nil,
        followsUnfinishedClaim: Bool = false
    ) {
        self.grant = grant
        self.clientID = clientID
        self.claim = claim
        self.generation = generation
        self.lastAttemptAt = lastAttemptAt
        self.refreshToken = refreshToken
        self.followsUnfinishedClaim = followsUnfinishedClaim
    }
}

import Base
import Storage

/// A claim on a grant, with the grant's state at the time of the claim.
struct RefreshAttempt: Hashable, Sendable {
    var grant: GrantID
    var clientID: String
    var claim: Int64
    /// The fence: the result is about this version of the refresh token.
    var generation: Int64
    /// The grant's `lastAttemptAt` at the claim. A different value means a change while the request was in flight.
    var lastAttemptAt: Timestamp?

    /// The refresh token that was stored at the claim. Its answer counts while it is still the stored one.
    var refreshToken: Grant.RefreshToken?
    /// `true` if the result of an earlier claim on the grant was never committed, so that an answer might be lost.
    var followsUnfinishedClaim: Bool = false
}

extension RefreshAttempt {
    /// The attempt that a claim makes, from the grant as the claim returned it.
    init(of claimed: Grant) {
        self.init(
            grant: claimed.id,
            clientID: claimed.clientID,
            claim: claimed.lease?.claim ?? 0,
            generation: claimed.generation,
            lastAttemptAt: claimed.lastAttemptAt,
            refreshToken: claimed.refreshToken,
            followsUnfinishedClaim: claimed.lease?.followsUnfinishedClaim ?? false
        )
    }
}

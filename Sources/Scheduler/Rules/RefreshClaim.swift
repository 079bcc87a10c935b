import Base
import Storage

/// A claim on a grant, with the facts about the grant that a late result is compared with.
///
/// They are stored with a result in a spill file, where the grant itself is not.
struct RefreshClaim: Hashable, Sendable {
    var grant: GrantID
    var clientID: String
    /// The claim's number, by which the stored lease names it.
    var number: Int64
    /// The fence: the result is about this version of the refresh token.
    var generation: Int64
    /// The grant's `lastAttemptAt` at the claim. A different value means a change while the request was in flight.
    var lastAttemptAt: Timestamp?

    /// The refresh token that was stored at the claim. Its answer counts while it is still the stored one.
    var refreshToken: Grant.RefreshToken?
    /// `true` if the result of an earlier claim on the grant was never committed, so that an answer might be lost.
    var followsUnfinishedClaim: Bool = false
}

extension RefreshClaim {
    /// The claim as the store returned it, with its grant.
    init(of claimed: Grant) {
        self.init(
            grant: claimed.id,
            clientID: claimed.clientID,
            number: claimed.lease?.claim ?? 0,
            generation: claimed.generation,
            lastAttemptAt: claimed.lastAttemptAt,
            refreshToken: claimed.refreshToken,
            followsUnfinishedClaim: claimed.lease?.followsUnfinishedClaim ?? false
        )
    }
}

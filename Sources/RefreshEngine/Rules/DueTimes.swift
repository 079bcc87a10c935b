package import Clocks
import Scheduler
package import Store

/// When a grant that is well is due again.
package enum DueTimes {
    /// The due time by the access token that is stored now; at once where there is none that lives.
    ///
    /// Without a refresh token it is the token's expiry, when the grant has run out.
    package static func due(_ grant: Grant, at now: Timestamp) -> Timestamp {
        due(
            accessToken: grant.accessToken,
            hasRefreshToken: grant.refreshToken != nil,
            phase: grant.id.phase,
            at: now
        )
    }

    package static func due(
        accessToken: Grant.AccessToken?,
        hasRefreshToken: Bool,
        phase: Double,
        at now: Timestamp
    ) -> Timestamp {
        guard let accessToken, accessToken.expiresAt > now else { return now }
        guard hasRefreshToken else { return accessToken.expiresAt }
        return DuePolicy.due(obtainedAt: accessToken.obtainedAt, expiresAt: accessToken.expiresAt, phase: phase)
    }
}

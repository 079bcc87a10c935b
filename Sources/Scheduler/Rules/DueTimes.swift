package import Base
package import Storage

/// The due times of grants whose last refresh, or the app's own token, is good.
package enum DueTimes {
    /// Returns the due time for the stored access token; `now` if there is none or it has expired.
    ///
    /// Without a refresh token it is the token's expiry, at which the grant ends.
    package static func due(_ grant: Grant, at now: Timestamp) -> Timestamp {
        due(
            accessToken: grant.accessToken,
            hasRefreshToken: grant.refreshToken != nil,
            phase: grant.id.phase,
            at: now
        )
    }

    /// Returns the due time after a refresh that succeeded at `now`: always in the future.
    static func dueAfterRefresh(_ grant: Grant, at now: Timestamp) -> Timestamp {
        guard let token = grant.accessToken else { return now + DuePolicy.shortestWait }
        return DuePolicy.due(
            obtainedAt: token.obtainedAt,
            expiresAt: token.expiresAt,
            phase: grant.id.phase,
            quickRefreshes: grant.quickRefreshes,
            afterRefreshAt: now
        )
    }

    /// `true` if a success at `now` follows the last one so soon that the schedule cannot have asked for it.
    static func isQuick(_ token: Grant.AccessToken, afterSuccessAt last: Timestamp?, at now: Timestamp) -> Bool {
        guard token.expiresAt > now else { return true }
        // A success in the future was stored before the clock was set back.
        guard let last, last <= now else { return false }
        return DuePolicy.isQuick(after: now - last, lifetime: token.expiresAt - token.obtainedAt)
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

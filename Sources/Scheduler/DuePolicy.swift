package import Clocks

/// When a grant should be refreshed, long before anything forces it to be.
package enum DuePolicy {
    /// How long before its expiry an access token is replaced at the latest, so that callers always get one that lasts.
    package static let margin: Duration = .seconds(5 * 60)

    /// The margin is never more than a lifetime divided by this: short-lived tokens would otherwise be due at birth.
    package static let lifetimesPerMargin = 5

    /// Due times are spread over a lifetime divided by this, so that grants stored together do not come due together.
    package static let lifetimesPerSpread = 6

    /// A grant is refreshed at least this often however long its token lives: a revoked grant shows only when asked.
    package static let longestInterval: Duration = .seconds(90 * 60)

    /// How far before the longest interval's end due times are spread, for the same reason as over a lifetime.
    package static let longestIntervalSpread: Duration = .seconds(15 * 60)

    /// Works out when to refresh: the margin and the grant's own jitter before expiry, and within the longest interval.
    ///
    /// - Parameters:
    ///   - obtainedAt: when the access token was obtained.
    ///   - expiresAt: when it expires.
    ///   - phase: the grant's place in the spread, from 0 up to but not including 1. Fixed per grant, so that grants
    ///     once spread stay spread, and rows that lie together in the store come due together.
    /// - Returns: the due time; never before the token was obtained, for margin and jitter take less than two fifths of a
    ///   lifetime, and that very instant when it has no lifetime.
    package static func due(obtainedAt: Timestamp, expiresAt: Timestamp, phase: Double) -> Timestamp {
        guard expiresAt > obtainedAt else { return obtainedAt }
        let lifetime = expiresAt - obtainedAt
        let jitter = lifetime / lifetimesPerSpread * phase
        let beforeExpiry = expiresAt - min(margin, lifetime / lifetimesPerMargin) - jitter
        let withinInterval = obtainedAt + (longestInterval - longestIntervalSpread * phase)
        return min(beforeExpiry, withinInterval)
    }
}

package import Base
package import Storage

/// The rule for due times: a grant is refreshed well before it must be.
///
/// Each grant has a *home instant* in every period, which follows from its phase. It is due at the last home instant
/// before the margin. So grants are spread over the whole period in whatever order they came, even after an outage that
/// refreshed them all at once. Grants with close phases are due together in every period, so a store that keeps them
/// together reads and writes them together. Random jitter instead would let neighbours drift apart, and would need many
/// periods to spread grants again after an outage.
///
///     // A token lives from 12:00 to 13:00. The margin is five minutes and the period 50.
///     DuePolicy.due(obtainedAt: noon, expiresAt: noon + .seconds(3600), phase: phase)   // from 12:05 to 12:55
package enum DuePolicy {
    /// The time before its expiry at which an access token is replaced at the latest, so that callers always get one
    /// that lasts.
    package static let margin: Duration = .seconds(5 * 60)

    /// The margin is at most a lifetime divided by this: short-lived tokens would otherwise be due at once.
    static let lifetimesPerMargin = 5

    /// The longest interval between refreshes, however long the token lives: only a refresh shows that a token was
    /// revoked.
    static let maximumInterval: Duration = .seconds(90 * 60)

    /// A period uses at most 95 % of the longest wait. The rest is slack: a refresh that runs late by less than that
    /// still lands on its grant's next home instant.
    static let periodFraction = 0.95

    /// The shortest wait after an attempt, whatever lifetime its answer gives.
    static let minimumWait: Duration = BackOff.minimum

    /// The number of quick refreshes in a row that do not slow the grant down: callers that find a token dead cause a
    /// few.
    static let quickRefreshesAllowed = 4

    /// The first wait after a quick refresh beyond `quickRefreshesAllowed`. It doubles.
    private static let slowedWait = BackOff(first: .seconds(10), maximum: .seconds(600))

    /// A refresh is quick if it follows the previous one within a period divided by this.
    private static let quickRefreshesPerPeriod = 8

    /// The units of a period, in milliseconds. A period is a multiple of one of them, so that lifetimes which differ by
    /// seconds (Google says 3599 as often as 3600) have the same period and so the same home instants.
    private static let periodSteps: [Int64] = [300_000, 60_000, 10_000, 1_000, 100, 10]
    /// A unit is at most a period divided by this, or rounding down would cause too many refreshes.
    private static let periodsPerStep: Int64 = 8

    /// Returns the time of the refresh: the last home instant before the margin, and within the longest interval.
    ///
    /// - Parameters:
    ///   - obtainedAt: the time at which the access token was obtained.
    ///   - expiresAt: the time at which it expires.
    ///   - phase: the grant's position in the period, from 0 up to but not including 1, which never changes.
    /// - Returns: the due time, which is never before `obtainedAt`, and equal to it if the token has no lifetime.
    package static func due(obtainedAt: Timestamp, expiresAt: Timestamp, phase: Double) -> Timestamp {
        guard expiresAt > obtainedAt else { return obtainedAt }
        let wait = maximumWait(lifetime: expiresAt - obtainedAt)
        let latest = (obtainedAt + wait).milliseconds
        let period = period(ofWait: wait.wholeMilliseconds)
        let offset = Int64(phase * Double(period))
        return Timestamp(milliseconds: latest - (latest - offset).modulo(period))
    }

    /// Returns the time of the next refresh after one that succeeded at `now`.
    ///
    /// The result is never in the past, whatever the lifetimes: the token might have expired in flight, or before a
    /// worker that stood still has stored it. After more quick refreshes than are allowed, each one doubles the wait.
    static func due(
        obtainedAt: Timestamp,
        expiresAt: Timestamp,
        phase: Double,
        quickRefreshes: Int,
        afterRefreshAt now: Timestamp
    ) -> Timestamp {
        let due = max(due(obtainedAt: obtainedAt, expiresAt: expiresAt, phase: phase), now + minimumWait)
        let excess = quickRefreshes - quickRefreshesAllowed
        guard excess > 0 else { return due }
        var slowed = now + slowedWait.cap(failures: excess)
        let latest = obtainedAt + maximumWait(lifetime: expiresAt - obtainedAt)
        // Even a slowed grant is refreshed before its live token expires: one refresh per period cannot become a loop.
        if latest >= due { slowed = min(slowed, latest) }
        return max(due, slowed)
    }

    /// `true` if a refresh came so soon after the previous one that the schedule cannot have asked for it, or brought
    /// an expired token.
    static func isQuick(after interval: Duration, lifetime: Duration) -> Bool {
        guard lifetime > .zero else { return true }
        let period = period(ofWait: maximumWait(lifetime: lifetime).wholeMilliseconds)
        return interval < .milliseconds(period / Int64(quickRefreshesPerPeriod))
    }

    /// Returns the longest wait that leaves the margin.
    private static func maximumWait(lifetime: Duration) -> Duration {
        min(lifetime - min(margin, lifetime / lifetimesPerMargin), maximumInterval)
    }

    /// Returns the time between two home instants of a grant for the longest time it can wait, in milliseconds.
    private static func period(ofWait wait: Int64) -> Int64 {
        let most = Int64(Double(wait) * periodFraction)
        let step = periodSteps.first { $0 <= most / periodsPerStep } ?? 1
        return max(most / step * step, 1)
    }
}

/// The due times of grants whose last refresh, or the app's own token, is good.
extension DuePolicy {
    /// Returns the due time for the stored access token, or `now` if there is none or it has expired. Without a refresh
    /// token it is the token's expiry, at which the grant ends.
    package static func due(_ grant: Grant, at now: Timestamp) -> Timestamp {
        due(accessToken: grant.accessToken, hasRefreshToken: grant.refreshToken != nil, phase: grant.id.phase, at: now)
    }

    /// Returns the due time after a refresh that succeeded at `now`: always in the future.
    ///
    /// `timeout` is the pause after which the refresh token does not work any more, if the server names one.
    static func dueAfterRefresh(_ grant: Grant, within timeout: Duration? = nil, at now: Timestamp) -> Timestamp {
        guard let token = grant.accessToken else { return now + minimumWait }
        let due = due(
            obtainedAt: token.obtainedAt,
            expiresAt: token.expiresAt,
            phase: grant.id.phase,
            quickRefreshes: grant.quickRefreshes,
            afterRefreshAt: now
        )
        guard let timeout else { return due }
        return max(now + minimumWait, min(due, latestDue(within: timeout, after: now)))
    }

    /// Returns the latest due time of a grant whose refresh token works only if it is used again within a timeout.
    static func latestDue(within timeout: Duration, after now: Timestamp) -> Timestamp {
        now + timeout * fractionOfTimeout
    }

    /// The rest of a refresh token's timeout is for retries.
    private static let fractionOfTimeout = 0.5

    /// `true` if a success at `now` follows the last one so soon that the schedule cannot have asked for it.
    static func isQuick(_ token: Grant.AccessToken, afterSuccessAt last: Timestamp?, at now: Timestamp) -> Bool {
        guard token.expiresAt > now else { return true }
        // A success in the future was stored before the clock was set back.
        guard let last, last <= now else { return false }
        return isQuick(after: now - last, lifetime: token.expiresAt - token.obtainedAt)
    }

    /// Returns the due time of a token that an app or an import has brought. It is never in the past: a token that
    /// others let grow old is not a delay of the worker.
    package static func due(
        accessToken: Grant.AccessToken?,
        hasRefreshToken: Bool,
        phase: Double,
        at now: Timestamp
    ) -> Timestamp {
        guard let accessToken, accessToken.expiresAt > now else { return now }
        guard hasRefreshToken else { return accessToken.expiresAt }
        return max(now, due(obtainedAt: accessToken.obtainedAt, expiresAt: accessToken.expiresAt, phase: phase))
    }
}

extension Int64 {
    /// Returns the non-negative remainder.
    fileprivate func modulo(_ divisor: Int64) -> Int64 {
        let rest = self % divisor
        return rest < 0 ? rest + divisor : rest
    }
}

package import Clocks

/// When a grant should be refreshed, long before anything forces it to be.
///
/// Each grant has a *home*: one instant in every period, told by its phase. It is due at the last home instant that leaves the
/// margin. So grants are spread over the whole period however they came, also after an outage that refreshed them all at once; and
/// a grant keeps its neighbours: those whose phases are close come due together, hour after hour, which lets a store that keeps
/// them together read and write them together.
package enum DuePolicy {
    /// How long before its expiry an access token is replaced at the latest, so that callers always get one that lasts.
    package static let margin: Duration = .seconds(5 * 60)

    /// The margin is never more than a lifetime divided by this: short-lived tokens would otherwise be due at birth.
    package static let lifetimesPerMargin = 5

    /// A grant is refreshed at least this often however long its token lives: a revoked grant shows only when asked.
    package static let longestInterval: Duration = .seconds(90 * 60)

    /// The part of the longest possible wait that a period is at most: a refresh that comes late by the rest of it still finds its
    /// grant's next home within reach, and does not push it out of step.
    package static let periodShare = 0.95

    /// The shortest wait after an attempt, whatever lifetime its answer had.
    package static let shortestWait: Duration = BackOff.shortest

    /// How many refreshes in a row may come much sooner than the schedule asks for: callers who found a token dead cause a few.
    package static let quickRefreshesAllowed = 4

    /// A refresh is quick if it follows the one before it within a period divided by this.
    private static let quickRefreshesPerPeriod = 8

    /// A period is a whole number of one of these, in milliseconds, so that lifetimes which differ by seconds (Google says 3599
    /// as often as 3600) have one period and with it the same homes.
    private static let periodSteps: [Int64] = [300_000, 60_000, 10_000, 1_000, 100, 10]
    /// A step is never more than a period divided by this, or rounding down would cost too many refreshes.
    private static let periodsPerStep: Int64 = 8

    /// Works out when to refresh: at the last home instant before the margin, and within the longest interval.
    ///
    /// - Parameters:
    ///   - obtainedAt: when the access token was obtained.
    ///   - expiresAt: when it expires.
    ///   - phase: the grant's place in the period, from 0 up to but not including 1, fixed for its life.
    /// - Returns: the due time; never before the token was obtained, and that very instant when it has no lifetime.
    package static func due(obtainedAt: Timestamp, expiresAt: Timestamp, phase: Double) -> Timestamp {
        guard expiresAt > obtainedAt else { return obtainedAt }
        let wait = longestWait(lifetime: expiresAt - obtainedAt)
        let latest = (obtainedAt + wait).milliseconds
        let period = period(ofWait: wait.wholeMilliseconds)
        let offset = Int64(phase * Double(period))
        return Timestamp(milliseconds: latest - (latest - offset).modulo(period))
    }

    /// Works out when to refresh again after a refresh that succeeded at `now`.
    ///
    /// The result never lies in the past, whatever the lifetimes: the token may have expired on its way, or by the time a worker
    /// that stood still has stored it. After more quick refreshes than are allowed the wait doubles with each.
    package static func due(
        obtainedAt: Timestamp,
        expiresAt: Timestamp,
        phase: Double,
        quickRefreshes: Int,
        afterRefreshAt now: Timestamp
    ) -> Timestamp {
        let due = max(due(obtainedAt: obtainedAt, expiresAt: expiresAt, phase: phase), now + shortestWait)
        let excess = quickRefreshes - quickRefreshesAllowed
        guard excess > 0 else { return due }
        let slowed = now + BackOff().cap(failures: excess)
        let latest = obtainedAt + longestWait(lifetime: expiresAt - obtainedAt)
        // A token that lives is replaced before its end all the same: once a period is no loop.
        return max(due, latest >= due ? min(slowed, latest) : slowed)
    }

    /// `true` if a refresh came so soon after the one before that the schedule cannot have asked for it, or brought a token
    /// that is dead.
    package static func isQuick(after interval: Duration, lifetime: Duration) -> Bool {
        guard lifetime > .zero else { return true }
        let period = period(ofWait: longestWait(lifetime: lifetime).wholeMilliseconds)
        return interval < .milliseconds(period / Int64(quickRefreshesPerPeriod))
    }

    /// The longest wait that leaves the margin.
    private static func longestWait(lifetime: Duration) -> Duration {
        min(lifetime - min(margin, lifetime / lifetimesPerMargin), longestInterval)
    }

    /// How far apart the homes of one grant are, by how long it can wait, in milliseconds.
    private static func period(ofWait wait: Int64) -> Int64 {
        let most = Int64(Double(wait) * periodShare)
        let step = periodSteps.first { $0 <= most / periodsPerStep } ?? 1
        return max(most / step * step, 1)
    }
}

extension Int64 {
    /// The remainder that is never negative.
    fileprivate func modulo(_ divisor: Int64) -> Int64 {
        let rest = self % divisor
        return rest < 0 ? rest + divisor : rest
    }
}

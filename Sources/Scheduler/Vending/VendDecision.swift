import Base
import Storage

/// The decision for a caller that wants a grant's access token: pure, from the grant as stored.
enum VendDecision: Hashable, Sendable {
    /// The stored token has enough life left.
    case serve
    /// A refresh is necessary.
    case refresh
    /// The last attempt has only just ended: a caller that gets a 401 each time must not cause a call to Google each
    /// time.
    case wait(Duration)
    /// A refresh is not possible: the user, or an administrator, must act.
    case refuse

    /// The tolerated lead of a token's issue time over the clock. Beyond it the token's expiry is not trusted.
    private static let tolerance: Duration = .seconds(5)

    static func make(for grant: Grant, minimumLife: Duration, at now: Timestamp) -> VendDecision {
        guard grant.state.isConnected else { return .refuse }
        if let life = remainingLife(of: grant, at: now), life > max(minimumLife, .zero) { return .serve }
        guard grant.refreshToken != nil else {
            // A better token is not available: a live one is served, however short its life.
            return remainingLife(of: grant, at: now) == nil ? .refuse : .serve
        }
        return .refresh
    }

    /// Returns the remaining life of the stored access token, or `nil` if it has expired, or if a clock that was ahead
    /// stored it.
    static func remainingLife(of grant: Grant, at now: Timestamp) -> Duration? {
        guard let token = grant.accessToken, token.obtainedAt <= now + tolerance, token.expiresAt > now else {
            return nil
        }
        return token.expiresAt - now
    }

    // MARK: Tokens that Google refused

    /// The shortest interval between attempts that callers can cause for one grant.
    static let minimumPause: Duration = .seconds(10)
    /// The interval after each quick refresh beyond those that are allowed: a caller that rejects every token must not
    /// cause six calls a minute.
    static let slowedPause = BackOff(first: .seconds(20), maximum: .seconds(600))

    /// Decides for a caller whose token Google refused. `storesRejectedToken` is `true` if it is the stored one.
    static func make(for grant: Grant, storesRejectedToken: Bool, at now: Timestamp) -> VendDecision {
        guard grant.state.isConnected else { return .refuse }
        guard storesRejectedToken else { return make(for: grant, minimumLife: .zero, at: now) }
        guard grant.refreshToken != nil else { return .refuse }
        guard let pause = pauseLeft(of: grant, at: now) else { return .refresh }
        return .wait(pause)
    }

    /// `true` if an attempt at the grant has only just failed: repeated calls must not cause a call to Google each
    /// time, which would give the same answer.
    static func hasJustFailed(_ grant: Grant, at now: Timestamp) -> Bool {
        grant.state == .retrying && pauseLeft(of: grant, at: now) != nil
    }

    /// `true` if the grant was refreshed so often that a live token is served instead of another refresh.
    static func isRefreshedTooOften(_ grant: Grant, at now: Timestamp) -> Bool {
        guard grant.quickRefreshes > DuePolicy.quickRefreshesAllowed else { return false }
        return pauseLeft(of: grant, at: now) != nil && remainingLife(of: grant, at: now) != nil
    }

    /// Returns the pause, which lasts as long as the lease after a request with an unknown outcome.
    private static func pauseAfterAttempt(at grant: Grant) -> Duration {
        if let lease = grant.lease, lease.isOfEndedRequest { return RefreshRules.maximumUnansweredWork }
        let excess = grant.quickRefreshes - DuePolicy.quickRefreshesAllowed
        return excess > 0 ? slowedPause.cap(failures: excess) : minimumPause
    }

    private static func pauseLeft(of grant: Grant, at now: Timestamp) -> Duration? {
        let pause = pauseAfterAttempt(at: grant)
        // An attempt in the future was recorded before the clock was set back.
        guard let last = grant.lastAttemptAt, last <= now, now < last + pause else { return nil }
        return last + pause - now
    }
}

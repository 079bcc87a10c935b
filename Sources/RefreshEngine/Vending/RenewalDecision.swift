package import Clocks
import Scheduler
package import Store

/// What to do for a caller whose token Google did not take: pure, from the grant as stored.
package enum RenewalDecision: Hashable, Sendable {
    /// The stored token is already another, and lives.
    case serve
    /// A fresh one is needed.
    case refresh
    /// The last try is only just over: a caller that gets a 401 each time must not turn into a call to Google each time.
    case wait(Duration)
    /// No refresh is possible: the user must act, or an administrator.
    case refuse

    /// How far apart the tries of one grant are that callers can bring about.
    package static let pause: Duration = .seconds(10)

    /// Decides; `storesRejectedToken` is whether the stored access token is the one that Google did not take.
    package static func make(for grant: Grant, storesRejectedToken: Bool, at now: Timestamp) -> RenewalDecision {
        guard grant.state.isConnected else { return .refuse }
        guard storesRejectedToken else {
            switch VendDecision.make(for: grant, minimumLife: .zero, at: now) {
            case .serve: return .serve
            case .refresh: return .refresh
            case .refuse: return .refuse
            }
        }
        guard grant.refreshToken != nil else { return .refuse }
        return pauseLeft(of: grant, at: now).map { .wait($0) } ?? .refresh
    }

    /// Whether a try of the grant has only just failed: who asks again and again must not turn into a call to Google each
    /// time, and would hear the same.
    package static func hasJustFailed(_ grant: Grant, at now: Timestamp) -> Bool {
        grant.state == .retrying && pauseLeft(of: grant, at: now) != nil
    }

    /// `true` if the grant was refreshed so often that a token which still lives is served instead of another refresh.
    package static func isRefreshedTooOften(_ grant: Grant, at now: Timestamp) -> Bool {
        grant.quickRefreshes > DuePolicy.quickRefreshesAllowed && pauseLeft(of: grant, at: now) != nil
            && VendDecision.remainingLife(of: grant, at: now) != nil
    }

    /// The pause grows with the number of quick refreshes: a caller that rejects every token must not cause six calls a minute.
    private static func pause(of grant: Grant) -> Duration {
        let excess = grant.quickRefreshes - DuePolicy.quickRefreshesAllowed
        return excess > 0 ? max(BackOff().cap(failures: excess + 1), pause) : pause
    }

    private static func pauseLeft(of grant: Grant, at now: Timestamp) -> Duration? {
        let pause = pause(of: grant)
        // A try that lies ahead of the clock was made before the clock was set back.
        guard let last = grant.lastAttemptAt, last <= now, now < last + pause else { return nil }
        return last + pause - now
    }
}

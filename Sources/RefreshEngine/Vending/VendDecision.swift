package import Clocks
package import Store

/// What to do for a caller who wants a grant's access token: pure, from the grant as stored.
package enum VendDecision: Hashable, Sendable {
    /// The stored token lives long enough.
    case serve
    /// A fresh one is needed.
    case refresh
    /// No refresh is possible: the user must act, or an administrator.
    case refuse

    /// How far a token's birth may lie ahead of the clock before its expiry is not believed any more.
    private static let tolerance: Duration = .seconds(5)

    package static func make(for grant: Grant, minimumLife: Duration, at now: Timestamp) -> VendDecision {
        guard grant.state.isConnected else { return .refuse }
        if let life = remainingLife(of: grant, at: now), life > max(minimumLife, .zero) { return .serve }
        guard grant.refreshToken != nil else {
            // Nothing better can be had: what still lives is served, however short it lives.
            return remainingLife(of: grant, at: now) == nil ? .refuse : .serve
        }
        return .refresh
    }

    /// How long the stored access token lives; `nil` when it does not, or when a clock that was ahead stored it.
    package static func remainingLife(of grant: Grant, at now: Timestamp) -> Duration? {
        guard let token = grant.accessToken, token.obtainedAt <= now + tolerance, token.expiresAt > now else {
            return nil
        }
        return token.expiresAt - now
    }
}

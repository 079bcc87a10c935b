package import Base
package import Storage

/// The decision for a caller that wants a grant's access token: pure, from the grant as stored.
package enum VendDecision: Hashable, Sendable {
    /// The stored token has enough life left.
    case serve
    /// A refresh is necessary.
    case refresh
    /// A refresh is not possible: the user, or an administrator, must act.
    case refuse

    /// The tolerated lead of a token's issue time over the clock; beyond it the token's expiry is not trusted.
    private static let tolerance: Duration = .seconds(5)

    package static func make(for grant: Grant, minimumLife: Duration, at now: Timestamp) -> VendDecision {
        guard grant.state.isConnected else { return .refuse }
        if let life = remainingLife(of: grant, at: now), life > max(minimumLife, .zero) { return .serve }
        guard grant.refreshToken != nil else {
            // A better token is not available: a live one is served, however short its life.
            return remainingLife(of: grant, at: now) == nil ? .refuse : .serve
        }
        return .refresh
    }

    /// Returns the remaining life of the stored access token; `nil` if it has expired, or if a clock that was ahead
    /// stored it.
    package static func remainingLife(of grant: Grant, at now: Timestamp) -> Duration? {
        guard let token = grant.accessToken, token.obtainedAt <= now + tolerance, token.expiresAt > now else {
            return nil
        }
        return token.expiresAt - now
    }
}

package import Base
package import Storage

/// A condition of a connected grant that an operator should know about.
package enum GrantWarning: String, Sendable {
    /// The refresh token expires soon.
    case refreshTokenEnds = "refresh_token_ends"
    /// The grant was not refreshed for so long that Google might expire its refresh token.
    case idle
    /// The access token cannot be renewed when it expires.
    case noRefreshToken = "no_refresh_token"

    package static func all(of grant: Grant, at now: Timestamp) -> [GrantWarning] {
        guard grant.state.isConnected else { return [] }
        guard let refreshToken = grant.refreshToken else { return [.noRefreshToken] }
        var warnings: [GrantWarning] = []
        if let end = refreshToken.expiresAt, end < now + GrantStatistics.warningBeforeEnd {
            warnings.append(.refreshTokenEnds)
        }
        if (grant.lastSuccessAt ?? grant.createdAt) < now - GrantStatistics.idleBeforeWarning { warnings.append(.idle) }
        return warnings
    }

    package var sentence: String {
        switch self {
        case .refreshTokenEnds: "the refresh token expires soon: have the user sign in again before then"
        case .idle: "not refreshed for months: Google forgets refresh tokens that are not used for six"
        case .noRefreshToken: "no refresh token is stored: the user must sign in again when the access token expires"
        }
    }
}

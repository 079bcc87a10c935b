package import Base

/// The numbers of grants in each state, of those that are due, and of those that may end soon.
package struct GrantStatistics: Hashable, Sendable {
    /// The time before the end of a refresh token's own lifetime at which a warning begins: long enough to reach
    /// the user.
    package static let warningBeforeEnd: Duration = .seconds(3 * 86_400)
    /// Google ends a refresh token after six months without use
    /// (https://developers.google.com/identity/protocols/oauth2#expiration); the warning begins after five.
    package static let idleBeforeWarning: Duration = .seconds(150 * 86_400)

    package var byState: [GrantState: Int]
    package var due: Int
    package var oldestDueAt: Timestamp?
    /// The number of connected grants whose refresh token expires soon.
    package var refreshTokensEnding: Int
    /// The number of connected grants that were not refreshed for so long that Google may end them.
    package var idle: Int
    /// The connected grants without a valid access token.
    package var expired: ExpiredGrants
    /// The number of grants of each client id that are in doubt after an `invalid_grant`; an estimate if many are
    /// `retrying`, as ``ExpiredGrants/Sample`` explains.
    package var inDoubt: [String: Int]

    package init(
        byState: [GrantState: Int],
        due: Int,
        oldestDueAt: Timestamp?,
        refreshTokensEnding: Int,
        idle: Int,
        expired: ExpiredGrants = ExpiredGrants(),
        inDoubt: [String: Int] = [:]
    ) {
        self.byState = byState
        self.due = due
        self.oldestDueAt = oldestDueAt
        self.refreshTokensEnding = refreshTokensEnding
        self.idle = idle
        self.expired = expired
        self.inDoubt = inDoubt
    }

    /// The number of all grants.
    package var grants: Int { byState.values.reduce(0, +) }
    /// The number of connected grants.
    package var connected: Int { GrantState.allCases.filter(\.isConnected).reduce(0) { $0 + byState[$1, default: 0] } }
}

/// The number of stored grants, and the number that this program has stored and not removed.
package struct GrantTally: Hashable, Sendable {
    package var counted: Int
    package var recorded: Int

    package init(counted: Int, recorded: Int) {
        self.counted = counted
        self.recorded = recorded
    }

    /// The text for a person if something else has removed or added rows.
    package var problem: String? {
        guard counted != recorded else { return nil }
        return """
            \(counted) grants are in the database, and \(recorded) were stored there: something else changed its rows. Grants \
            that are gone are not refreshed
            """
    }
}

extension GrantStore {
    /// Returns the statistics with the usual limits of the warnings.
    package func grantStatistics(at now: Timestamp) async throws -> GrantStatistics {
        try await grantStatistics(
            at: now,
            refreshTokensEndingBefore: now + GrantStatistics.warningBeforeEnd,
            idleSince: now - GrantStatistics.idleBeforeWarning
        )
    }
}

package import Clocks

/// Counts over all grants.
package struct Census: Hashable, Sendable {
    /// A refresh token that dies of itself within this time is warned of: long enough for a user to come by.
    package static let warningBeforeEnd: Duration = .seconds(3 * 86_400)
    /// Google forgets a refresh token after six months without use
    /// (https://developers.google.com/identity/protocols/oauth2#expiration); five of them are a warning.
    package static let idleBeforeWarning: Duration = .seconds(150 * 86_400)

    package var byState: [GrantState: Int]
    package var due: Int
    package var oldestDueAt: Timestamp?
    /// Connected grants whose refresh token dies of itself soon.
    package var refreshTokensEnding: Int
    /// Connected grants that have not been refreshed for so long that Google may forget them.
    package var idle: Int

    package init(byState: [GrantState: Int], due: Int, oldestDueAt: Timestamp?, refreshTokensEnding: Int, idle: Int) {
        self.byState = byState
        self.due = due
        self.oldestDueAt = oldestDueAt
        self.refreshTokensEnding = refreshTokensEnding
        self.idle = idle
    }

    /// All grants, in whichever state.
    package var grants: Int { byState.values.reduce(0, +) }
}

extension GrantStore {
    /// The census with the warnings' usual terms.
    package func census(at now: Timestamp) async throws -> Census {
        try await census(
            at: now,
            refreshTokensEndingBefore: now + Census.warningBeforeEnd,
            idleSince: now - Census.idleBeforeWarning
        )
    }
}

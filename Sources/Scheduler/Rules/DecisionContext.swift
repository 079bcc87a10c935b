package import Base
package import Storage

/// All that the rules know when they decide about a result.
package struct DecisionContext: Sendable {
    package var result: RefreshResult
    /// The grant as stored at this instant.
    package var grant: Grant
    /// The health of the grant's client as stored at this instant.
    package var health: ClientHealth
    package var now: Timestamp
    package var instant: BootInstant
    /// A random number in 0..<1, for back-off.
    package var unit: Double

    package init(
        result: RefreshResult,
        grant: Grant,
        health: ClientHealth,
        now: Timestamp,
        instant: BootInstant,
        unit: Double
    ) {
        self.result = result
        self.grant = grant
        self.health = health
        self.now = now
        self.instant = instant
        self.unit = unit
    }

    /// `true` while the lease of the result's claim is stored: no other worker has claimed the grant since.
    var holdsLease: Bool { grant.lease?.claim == result.attempt.claim }

    /// `true` if the request was sent with the current version of the refresh token.
    ///
    /// After a restore, the token of a user who signs in again can get a number that another token had. So tokens are
    /// compared too.
    var isCurrent: Bool {
        let attempt = result.attempt
        return grant.generation == attempt.generation
            && (attempt.refreshToken == nil || !result.answer.containsTokens || grant.holds(attempt.refreshToken))
    }

    /// Returns the health with one more answer that shows if the grant's token is alive.
    ///
    /// Grants that never worked do not count, so that dead tokens which strangers bring cannot look like a wave.
    func healthRecordingAnswer(isInvalidGrant: Bool) -> ClientHealth {
        guard grant.isProven else { return health }
        var health = health
        health.recordAnswer(isInvalidGrant: isInvalidGrant, at: now)
        return health
    }
}

import Base
import Storage
import Telemetry

/// All that the rules know when they decide about a result.
///
/// A rule returns a decision and changes nothing else, so no rule depends on what another has changed. `decide`
/// consumes the context and changes grant and health in place: a copy of a grant costs 900 instructions.
struct DecisionContext: Sendable {
    var result: RefreshResult
    /// The grant as stored at this instant.
    var grant: Grant
    /// The health of the grant's client as stored at this instant.
    var health: ClientHealth
    var now: Timestamp
    var instant: BootInstant
    /// A random number in 0..<1, for back-off.
    var jitter: Double

    /// `true` while the lease of the result's claim is stored: no other worker has claimed the grant since.
    var holdsLease: Bool { grant.lease?.claim == result.attempt.claim }

    /// `true` if the request was sent with the current version of the refresh token. After a restore, the token of a
    /// user who signs in again can get a number that another token had. So tokens are compared too.
    var isCurrent: Bool {
        let attempt = result.attempt
        guard grant.generation == attempt.generation else { return false }
        guard result.answer.containsTokens, let sent = attempt.refreshToken else { return true }
        return grant.holds(sent)
    }

    /// Returns a decision that stores the grant with a change, and the health.
    func decision(
        _ outcome: RefreshOutcome,
        health: ClientHealth? = nil,
        _ change: (inout Grant) -> [GrantEvent] = { _ in [] }
    ) -> RefreshDecision {
        var grant = grant
        let events = change(&grant)
        return RefreshDecision(outcome: outcome, grant: grant, events: events, health: health ?? self.health)
    }

    /// Returns the health with one more answer that shows if the grant's token is alive. Grants that never worked do
    /// not count, so that dead tokens which strangers bring cannot look like a wave.
    func healthRecordingAnswer(isRefusal: Bool) -> ClientHealth {
        guard grant.isProven else { return health }
        var health = health
        health.recordAnswer(isRefusal: isRefusal, at: now)
        return health
    }
}

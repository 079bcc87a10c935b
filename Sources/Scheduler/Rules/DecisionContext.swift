import Base
import Storage
import Telemetry

/// All that the rules know when they decide about a result.
///
/// The rules change only the context and the decision that they return. `decide` consumes the context, because a copy
/// of a grant costs 900 instructions.
struct DecisionContext: Sendable {
    var result: RefreshResult
    /// The grant as the claim returned it. If the stored grant has changed since, the rules decide again, from the
    /// stored one.
    var grant: Grant
    /// The stored health of the grant's client. Empty for a plain refresh, whose decision does not read it, and for a
    /// recovered result, which is too old to show something about the client (``ResultRecovery``).
    var health: ClientHealth
    var now: Timestamp
    var instant: BootInstant
    /// A random number in 0..<1, for back-off.
    var jitter: Double

    /// `true` while the lease of the result's claim is stored: no other worker has claimed the grant since.
    var holdsLease: Bool { grant.lease?.claim == result.claim.number }

    /// Removes the lease of the result's claim from the grant, and returns it. Returns `nil` if it is not stored.
    mutating func takeLease() -> Lease? {
        guard holdsLease else { return nil }
        defer { grant.setLease(nil) }
        return grant.lease
    }

    /// `true` if the request was sent with the current version of the refresh token. After a restore, the token of a
    /// user who signs in again can get a number that another token had. So tokens are compared too.
    var isCurrent: Bool {
        guard grant.generation == result.claim.generation else { return false }
        guard result.answer.containsTokens, let sent = result.claim.refreshToken else { return true }
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

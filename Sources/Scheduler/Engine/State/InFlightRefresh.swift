import Base
import Storage
import Synchronization

/// The refresh of one grant that this worker has claimed, until its result is committed.
final class InFlightRefresh: Sendable {
    let grant: Grant
    let claim: Int64
    /// The time at which the grant was due; the lateness in the logs is measured from it.
    let dueAt: Timestamp?
    /// `true` if a caller asked for the refresh before it was due.
    let isForced: Bool
    /// `true` if its answer must be stored with the client's health, because the breaker is not closed or the endpoint
    /// fails.
    let needsHealth: Bool
    /// The end of the lease by this machine's boot clock; it is never later than the stored one, because the clock is
    /// read before the lease is requested.
    private let leaseEnd: Mutex<BootInstant>

    init(grant: Grant, claim: Int64, isForced: Bool, needsHealth: Bool = true, leaseEnd: BootInstant) {
        self.grant = grant
        self.claim = claim
        dueAt = grant.dueAt
        self.isForced = isForced
        self.needsHealth = needsHealth
        self.leaseEnd = Mutex(leaseEnd)
    }

    var attempt: RefreshAttempt {
        RefreshAttempt(
            grant: grant.id,
            clientID: grant.clientID,
            claim: claim,
            generation: grant.generation,
            lastAttemptAt: grant.lastAttemptAt,
            refreshToken: grant.refreshToken,
            followsUnfinishedClaim: grant.lease?.followsUnfinishedClaim ?? false
        )
    }

    /// `true` if a request to the token endpoint is needed: not for a revocation, and not without a refresh token.
    var needsTokenRequest: Bool { grant.refreshToken != nil && grant.revocationAskedAt == nil }

    func leaseRenewed(until instant: BootInstant) {
        leaseEnd.withLock { $0 = max($0, instant) }
    }

    func leaseRemaining(at instant: BootInstant) -> Duration {
        leaseEnd.withLock { $0 } - instant
    }
}

import Clocks
import Store
import Synchronization

/// One grant that this worker has claimed, from the claim until its result is committed.
final class InFlightRefresh: Sendable {
    let grant: Grant
    let claim: Int64
    /// The time at which the grant was due; the lateness in the logs is measured from it.
    let dueAt: Timestamp?
    /// `true` if a caller asked for the refresh before it was due.
    let isForced: Bool
    /// The end of the lease by this process's own boot clock, which was read before the lease was requested: so never
    /// too late.
    private let leaseEnd: Mutex<BootInstant>

    init(grant: Grant, claim: Int64, isForced: Bool, leaseEnd: BootInstant) {
        self.grant = grant
        self.claim = claim
        dueAt = grant.dueAt
        self.isForced = isForced
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
    var asksForToken: Bool { grant.refreshToken != nil && grant.revocationAskedAt == nil }

    func leaseRenewed(until instant: BootInstant) {
        leaseEnd.withLock { $0 = max($0, instant) }
    }

    func leaseRemaining(at instant: BootInstant) -> Duration {
        leaseEnd.withLock { $0 } - instant
    }
}

/// The end of a refresh, for the callers that wait for it.
enum RefreshCompletion: Sendable {
    /// The result is committed.
    case committed(CommittedResult)
    /// Another worker has the grant, or it was not due any more.
    case elsewhere
    /// The lease was given back, or the store failed, before there was an answer.
    case abandoned
    /// A caller's refresh did not begin, for this reason.
    case refused(VendReason)
}

/// The end of a refresh, which any number of callers can await, before or after it has come.
final class CompletionSignal: Sendable {
    private struct State {
        var end: RefreshCompletion?
        var waiters: [CheckedContinuation<RefreshCompletion, Never>] = []
    }

    private let state = Mutex(State())

    var end: RefreshCompletion {
        get async {
            await withCheckedContinuation { waiter in
                let known = state.withLock { state in
                    if state.end == nil { state.waiters.append(waiter) }
                    return state.end
                }
                if let known { waiter.resume(returning: known) }
            }
        }
    }

    /// Wakes all waiting callers; only the first call counts.
    func complete(_ end: RefreshCompletion) {
        let waiters = state.withLock { state in
            guard state.end == nil else { return [CheckedContinuation<RefreshCompletion, Never>]() }
            state.end = end
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: end) }
    }
}

import Base
import Storage
import Synchronization

/// The refresh of one grant that this worker has claimed, until its result is committed.
final class InFlightRefresh: Sendable {
    let grant: Grant
    let attempt: RefreshAttempt
    /// `true` if a caller asked for the refresh before it was due.
    let isForced: Bool
    /// `true` if its answer must be stored with the client's health, because the breaker is not closed or the endpoint
    /// fails.
    let needsHealth: Bool
    /// The end of the lease by this machine's boot clock.
    ///
    /// It is never later than the stored one, because the clock is read before the lease is requested.
    private let leaseEnd: Mutex<BootInstant>

    /// Creates the refresh of a grant as a claim returned it, with its lease.
    init(grant: Grant, isForced: Bool, needsHealth: Bool = true, leaseEnd: BootInstant) {
        self.grant = grant
        attempt = RefreshAttempt(of: grant)
        self.isForced = isForced
        self.needsHealth = needsHealth
        self.leaseEnd = Mutex(leaseEnd)
    }

    /// `true` if a request to the token endpoint is needed: not for a revocation, and not without a refresh token.
    var needsTokenRequest: Bool { grant.refreshToken != nil && !isRevocation }

    var isRevocation: Bool { grant.revocationAskedAt != nil }

    func leaseRenewed(until instant: BootInstant) { leaseEnd.withLock { $0 = max($0, instant) } }

    func leaseRemaining(at instant: BootInstant) -> Duration { leaseEnd.withLock { $0 } - instant }
}

/// A refresh whose result is committed, or never will be.
///
/// It is shared by the log and the callers that wait, because copies of decisions are costly.
final class FinishedRefresh: Sendable {
    let refresh: InFlightRefresh
    /// The result, or `nil` if the response could not be sealed and so was not read.
    let result: RefreshResult?
    /// The decision that is stored, or `nil` if no request was sent, or if the worker stops while the store fails.
    let decision: RefreshDecision?
    /// The events of other grants that were recalled because of this result.
    let recalled: [GrantEvent]
    /// `true` if it was stored without its client's health.
    let isPlain: Bool

    init(
        _ refresh: InFlightRefresh,
        _ result: RefreshResult?,
        decision: consuming RefreshDecision? = nil,
        recalled: [GrantEvent] = [],
        isPlain: Bool = false
    ) {
        self.refresh = refresh
        self.result = result
        self.decision = decision
        self.recalled = recalled
        self.isPlain = isPlain
    }

    /// `true` if no request was sent, so that the grant can be tried again at once.
    var isNotSent: Bool { result?.answer.isNotSent ?? false }
}

/// The end of a refresh, as reported to the callers that wait for it.
enum RefreshCompletion: Sendable {
    /// The result is committed.
    case committed(FinishedRefresh)
    /// Another worker has the grant, or it was not due any more.
    case handledElsewhere
    /// The lease was given back, or the store failed, before there was an answer.
    case abandoned
    /// A revocation was given back until fewer are in flight.
    case deferred
    /// A caller's refresh was not claimed, for this reason.
    case refused(VendReason)
}

/// A signal of the end of a refresh, which any number of callers can await, before or after it.
final class CompletionSignal: Sendable {
    private struct State {
        var completion: RefreshCompletion?
        var waiters: [CheckedContinuation<RefreshCompletion, Never>] = []
    }

    private let state = Mutex(State())

    /// The end of the refresh, or `nil` while it is in flight.
    var completion: RefreshCompletion? { state.withLock { $0.completion } }

    /// Waits for the end of the refresh.
    var value: RefreshCompletion {
        get async {
            await withCheckedContinuation { waiter in
                let completion = state.withLock { state in
                    if state.completion == nil { state.waiters.append(waiter) }
                    return state.completion
                }
                if let completion { waiter.resume(returning: completion) }
            }
        }
    }

    /// Wakes all waiting callers.
    ///
    /// Only the first call counts.
    func complete(_ completion: RefreshCompletion) {
        let waiters = state.withLock { state in
            guard state.completion == nil else { return [] as [CheckedContinuation<RefreshCompletion, Never>] }
            defer { state = State(completion: completion) }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: completion) }
    }
}

import Base
import Storage
import Synchronization

/// Permissions for the refreshes of callers and of a pass, which wait for the pace in tasks of their own.
extension RefreshEngineState {
    /// The answer to a caller whose refresh is due now.
    enum CallerPermission: Equatable {
        case send
        /// The caller may send if the store grants it the client's probe.
        case askForProbe
        /// The caller asks again after this time.
        case wait(Duration)
        case refuse(VendReason)
    }

    /// Decides on one refresh for a caller that waits until `end`.
    mutating func permitCaller(of client: String, until end: BootInstant, under conditions: Conditions)
        -> CallerPermission
    {
        guard !isStopping else { return .refuse(.stopping) }
        // The new token could not be stored either.
        guard !conditions.isCommitFailing else { return .refuse(.storeFailing) }
        addGate(of: client)
        let instant = sharedInstant(at: conditions.instant)
        switch gates[client]?.health.breaker.permits(at: instant) {
        case .wait: return .refuse(.breakerOpen)
        case .probeDue: return .askForProbe
        case .all, nil: break
        }
        if gates[client]?.pacer.take(upTo: 1, at: instant) == 1 { return .send }
        let wait = max(gates[client]?.pacer.nextAvailable(at: instant) ?? .zero, .milliseconds(1))
        return conditions.instant + wait < end ? .wait(wait) : .refuse(.throttled)
    }

    /// Ends a caller's refresh before its claim.
    mutating func refuse(_ claim: ClaimRequest, _ reason: VendReason) -> [EngineAction] {
        var actions: [EngineAction] = []
        end(claim.ids, as: .refused(reason), &actions)
        return actions
    }

    /// The answer to a pass.
    enum PassPermission: Equatable {
        case send(Int)
        /// One grant may be sent if the store grants the client's probe.
        case askForProbe
        /// The pass asks again after this time.
        case wait(Duration)
        /// The pass asks again when a refresh has ended.
        case waitForSlot
        /// The breaker is open, the engine is stopping or the time is up.
        case stop
    }

    /// Decides on up to `count` grants for a pass that ends by `end`.
    mutating func permitPass(
        _ count: Int,
        of client: String,
        until end: BootInstant,
        under conditions: Conditions
    ) -> PassPermission {
        guard !isStopping, conditions.instant < end else { return .stop }
        if let pause = claimPause(under: conditions) { return .wait(pause) }
        // The next report of the workers shows if another worker has the missing key.
        guard conditions.isKeyRingComplete else { return .wait(.milliseconds(50)) }
        addGate(of: client)
        let instant = sharedInstant(at: conditions.instant)
        switch gates[client]?.health.breaker.permits(at: instant) {
        case .wait: return .stop
        case .probeDue: return .askForProbe
        case .all, nil: break
        }
        let free = min(count, maximumInFlight - slots.count)
        guard free >= min(count, minimumFreeSlots) else { return .waitForSlot }
        let allowed = gates[client]?.pacer.take(upTo: free, at: instant) ?? 0
        guard allowed == 0 else { return .send(allowed) }
        let wait = max(gates[client]?.pacer.nextAvailable(at: instant) ?? .zero, Self.gatheringTime)
        return conditions.instant + wait < end ? .wait(wait) : .stop
    }
}

/// A signal of the end of a refresh, which any number of callers can await, before or after it.
final class CompletionSignal: Sendable {
    private struct State {
        var completion: RefreshCompletion?
        var waiters: [CheckedContinuation<RefreshCompletion, Never>] = []
    }

    private let state = Mutex(State())

    /// The end of the refresh; `nil` while it is in flight.
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

    /// Wakes all waiting callers; only the first call counts.
    func complete(_ completion: RefreshCompletion) {
        let waiters = state.withLock { state in
            guard state.completion == nil else { return [CheckedContinuation<RefreshCompletion, Never>]() }
            state.completion = completion
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: completion) }
    }
}

/// The end of a refresh, as reported to the callers that wait for it.
enum RefreshCompletion: Sendable {
    /// The result is committed.
    case committed(FinishedRefresh)
    /// Another worker has the grant, or it was not due any more.
    case handledElsewhere
    /// The lease was given back, or the store failed, before there was an answer.
    case abandoned
    /// A caller's refresh was not claimed, for this reason.
    case refused(VendReason)
}

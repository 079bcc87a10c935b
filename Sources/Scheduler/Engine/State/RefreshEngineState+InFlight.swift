import Base
import GoogleOAuth
import Storage
import Synchronization

/// Refreshes in flight: each grant has at most one slot, from before its claim until its result is committed.
extension RefreshEngineState {
    /// Gives grants a slot; returns their claim, and the completion of each.
    ///
    /// A grant that has a slot already is joined: it never has a second refresh in flight.
    mutating func reserve(
        _ ids: [GrantID],
        dueBy: Timestamp?,
        seen: Grant? = nil
    ) -> (claim: ClaimRequest, completions: [CompletionSignal]) {
        var free: [GrantID] = []
        var completions: [CompletionSignal] = []
        free.reserveCapacity(ids.count)
        completions.reserveCapacity(ids.count)
        for id in ids {
            let existing = slots[id]
            let slot = existing ?? InFlightSlot()
            completions.append(slot.completion)
            guard existing == nil else { continue }
            slots[id] = slot
            free.append(id)
        }
        return (ClaimRequest(ids: free, dueBy: dueBy, seen: seen), completions)
    }

    /// The requests of grants have been sent and can be cancelled.
    mutating func sent(_ cancellations: [(GrantID, @Sendable () -> Void)]) {
        for (id, cancel) in cancellations { slots[id]?.cancel = cancel }
    }

    /// The refreshes that are in flight.
    var refreshes: [InFlightRefresh] { slots.values.compactMap(\.refresh) }

    /// Refreshes have ended: their results are committed, were not sent, or cannot be stored before the stop.
    mutating func finished(_ batch: [FinishedRefresh], at conditions: Conditions) -> [EngineAction] {
        var actions: [EngineAction] = []
        actions.reserveCapacity(batch.count + 4)
        let committed = batch.filter { $0.committed != nil }
        if !committed.isEmpty { actions.append(.logRefreshes(committed)) }
        let slotsBefore = slots.count
        var unsent: [GrantID: Int64] = [:]
        updateHealth(after: batch)
        for finished in batch {
            let refresh = finished.refresh
            let id = refresh.grant.id
            assert(isStopping || slots[id]?.refresh === refresh, "a refresh was delivered twice")
            if let report = finished.report, case .granted = report.result.answer, let latency = report.latency {
                inFlightLimit.record(latency, at: conditions.instant)
            }
            if let committed = finished.committed {
                addFirstAnswer(committed, about: refresh.grant, at: conditions.instant, &actions)
                apply(committed, client: refresh.grant.clientID, at: conditions, &actions)
                freeSlot(of: id, as: .committed(finished), &actions)
            } else if finished.isNotSent {
                unsent[id] = refresh.claim
            } else {
                freeSlot(of: id, as: .abandoned, &actions)
            }
        }
        if slots.count < slotsBefore { addActionsOfFreeSlots(&actions) }
        // The results after these must not wait for it.
        if !unsent.isEmpty { actions.append(.release(unsent, end: .abandoned)) }
        return actions
    }

    /// Takes over the health of each client as the last result of a batch left it, before any of them is applied.
    private mutating func updateHealth(after batch: [FinishedRefresh]) {
        var updated: [String] = []
        for finished in batch.reversed() {
            guard let committed = finished.committed, !committed.isPlain else { continue }
            let client = finished.refresh.grant.clientID
            guard !updated.contains(client), let health = committed.health else { continue }
            updateHealth(health, of: client)
            updated.append(client)
        }
    }

    /// Takes over the consequences of a committed result for the schedule and the client.
    private mutating func apply(
        _ committed: CommittedResult,
        client: String,
        at conditions: Conditions,
        _ actions: inout [EngineAction]
    ) {
        let decision = committed.decision
        if let change = decision.breakerChange { actions.append(.logBreaker(change, client: client)) }
        if decision.limitsChanged, let pacer = gates[client]?.pacer {
            let instant = sharedInstant(at: conditions.instant)
            actions.append(
                .logPace(
                    client: client,
                    ceiling: pacer.ceiling(at: instant),
                    paused: max(.zero, (pacer.limits.pausedUntil ?? instant) - instant),
                    reason: committed.result.code
                )
            )
        }
        if let grant = committed.grant, share.owns(grant.id) { expect(grant, at: conditions.now) }
        if !committed.recalled.isEmpty { nextScan = conditions.instant }
        if decision.needsWitness, !isStopping, gates[client]?.mayAskWitness(at: conditions.instant) ?? false {
            actions.append(.askWitness(client: client))
        }
        if decision.endsOutage { actions.append(.expediteRetries(client: client)) }
    }

    private mutating func addFirstAnswer(
        _ committed: CommittedResult,
        about claimed: Grant,
        at instant: BootInstant,
        _ actions: inout [EngineAction]
    ) {
        let client = claimed.clientID
        switch committed.result.answer {
        case .granted:
            if gates[client]?.firstAnswers?.succeed() == true {
                actions.append(.logHold(client: client, isHeld: false))
            }
        case .failed(.invalidGrant, _) where committed.grant?.isProven ?? false:
            let wasInDoubt = GrantReason.awaitingConfirmation.contains(claimed.reason)
            let isHeld =
                gates[client]?.firstAnswers?.refuse(claimed.id, wasInDoubt: wasInDoubt, at: instant) ?? false
            if isHeld { actions.append(.logHold(client: client, isHeld: true)) }
        default: break
        }
    }

    /// The leases of grants have been released, or will expire.
    mutating func released(_ ids: some Sequence<GrantID>, as completion: RefreshCompletion) -> [EngineAction] {
        var actions: [EngineAction] = []
        end(ids, as: completion, &actions)
        return actions
    }

    /// Frees slots, and adds the actions that follow.
    mutating func end(
        _ ids: some Sequence<GrantID>,
        as completion: RefreshCompletion,
        _ actions: inout [EngineAction]
    ) {
        let slotsBefore = slots.count
        for id in ids { freeSlot(of: id, as: completion, &actions) }
        if slots.count < slotsBefore { addActionsOfFreeSlots(&actions) }
    }

    private mutating func freeSlot(
        of id: GrantID,
        as completion: RefreshCompletion,
        _ actions: inout [EngineAction]
    ) {
        guard let slot = slots.removeValue(forKey: id) else { return }
        actions.append(.complete(slot.completion, completion))
    }

    private func addActionsOfFreeSlots(_ actions: inout [EngineAction]) {
        actions.append(.expectResults(inFlight: slots.count))
        actions.append(.wakeLoop)
        if slots.isEmpty { actions.append(.reportIdle) }
    }
}

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

/// The slot of one refresh in flight, from just before its claim until its result is committed.
struct InFlightSlot: Sendable {
    /// Signals the end of the refresh to all callers that wait for it.
    let completion = CompletionSignal()
    /// The refresh; `nil` until the grant is claimed.
    var refresh: InFlightRefresh?
    /// Cancels the request.
    var cancel: (@Sendable () -> Void)?
}

import Base
import GoogleOAuth
import Storage

/// Refreshes in flight: each grant has at most one slot, from before its claim until its result is committed.
extension RefreshEngineState {
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
        let committed = batch.filter { $0.decision != nil }
        if !committed.isEmpty { actions.append(.logRefreshes(committed)) }
        let slotsBefore = slots.count
        var unsent: [GrantID: Int64] = [:]
        updateHealth(after: batch)
        for finished in batch {
            let refresh = finished.refresh
            let id = refresh.grant.id
            assert(isStopping || slots[id]?.refresh === refresh, "a refresh was delivered twice")
            if let result = finished.result, case .granted = result.answer, let latency = result.latency {
                inFlightLimit.recordAnswer(latency, at: conditions.instant)
            }
            if let result = finished.result, refresh.needsTokenRequest {
                reach.record(result.answer, of: refresh.grant.clientID, at: conditions.now)
            }
            if let result = finished.result, let decision = finished.decision {
                addFirstAnswer(result, decision, about: refresh, at: conditions.instant, &actions)
                apply(result, decision, client: refresh.grant.clientID, at: conditions, &actions)
                if !finished.recalled.isEmpty { nextScan = conditions.instant }
                freeSlot(of: id, as: .committed(finished), &actions)
            } else if finished.isNotSent {
                unsent[id] = refresh.attempt.claim
            } else {
                freeSlot(of: id, as: .abandoned, &actions)
            }
        }
        actions += updateReach()
        if slots.count < slotsBefore { addActionsOfFreeSlots(&actions) }
        // The results after these must not wait for it.
        if !unsent.isEmpty { actions.append(.release(unsent, end: .abandoned)) }
        return actions
    }

    /// Takes over the health of each client as the last result of a batch left it, before any of them is applied.
    private mutating func updateHealth(after batch: [FinishedRefresh]) {
        var updated: [String] = []
        for finished in batch.reversed() {
            let client = finished.refresh.grant.clientID
            guard !finished.isPlain, !updated.contains(client), let health = finished.decision?.health else { continue }
            updateHealth(health, of: client)
            updated.append(client)
        }
    }

    /// Takes over the consequences of a committed result for the schedule and the client.
    private mutating func apply(
        _ result: RefreshResult,
        _ decision: RefreshDecision,
        client: String,
        at conditions: Conditions,
        _ actions: inout [EngineAction]
    ) {
        if let change = decision.effect.breakerChange { actions.append(.logBreaker(change, client: client)) }
        if decision.effect.limitsChanged, let pacer = gates[client]?.pacer {
            let instant = sharedInstant(at: conditions.instant)
            actions.append(
                .logPace(
                    client: client,
                    ceiling: pacer.ceiling(at: instant),
                    paused: max(.zero, (pacer.limits.pausedUntil ?? instant) - instant),
                    reason: result.code
                )
            )
        }
        if let grant = decision.grant, share.owns(grant.id) { expect(grant, at: conditions.now) }
        if decision.needsHealthyGrant, !isStopping,
            gates[client]?.mayRefreshHealthyGrant(at: conditions.instant) == true
        {
            actions.append(.refreshHealthyGrant(client: client))
        }
        if decision.effect.endsOutage { actions.append(.expediteRetries(client: client)) }
    }

    private mutating func addFirstAnswer(
        _ result: RefreshResult,
        _ decision: RefreshDecision,
        about refresh: InFlightRefresh,
        at instant: BootInstant,
        _ actions: inout [EngineAction]
    ) {
        let client = refresh.grant.clientID
        switch result.answer {
        case .granted:
            if gates[client]?.firstAnswers?.succeed() == true {
                actions.append(.logSuspectedCopy(client: client, isSuspected: false))
            }
        case .failed(.invalidGrant, _) where decision.grant?.isProven ?? false:
            let wasInDoubt = GrantReason.awaitingConfirmation.contains(refresh.grant.reason)
            let isHeld =
                gates[client]?.firstAnswers?.refuse(refresh.grant.id, wasInDoubt: wasInDoubt, at: instant) ?? false
            if isHeld { actions.append(.logSuspectedCopy(client: client, isSuspected: true)) }
        default: break
        }
    }

    /// Refreshes have ended without a result.
    ///
    /// Their leases were released, will expire, or were never taken.
    mutating func ended(_ ids: some Sequence<GrantID>, as completion: RefreshCompletion) -> [EngineAction] {
        var actions: [EngineAction] = []
        end(ids, as: completion, &actions)
        return actions
    }

    /// `true` if leases should be released: while the store fails, a stop does not wait for it, and the leases expire.
    func mayRelease(under conditions: Conditions) -> Bool {
        !isStopping || !conditions.isCommitFailing && claimBackOff.failures == 0
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

    private mutating func freeSlot(of id: GrantID, as completion: RefreshCompletion, _ actions: inout [EngineAction]) {
        guard let slot = slots.removeValue(forKey: id) else { return }
        actions.append(.complete(slot.completion, completion))
    }

    private func addActionsOfFreeSlots(_ actions: inout [EngineAction]) {
        actions.append(.expectResults(inFlight: slots.count))
        actions.append(.wakeLoop)
        if slots.isEmpty { actions.append(.reportIdle) }
    }
}

import Base
import GoogleOAuth
import Storage

/// Refreshes in flight: each grant has at most one slot, from before its claim until its result is committed.
extension RefreshEngineState {
    /// The refreshes that are in flight.
    var refreshes: [Refresh] { slots.values.compactMap(\.refresh) }

    /// Refreshes have ended: their decisions are committed, they were not sent, or they cannot be stored before the
    /// stop.
    mutating func delivered(_ batch: [Refresh], under conditions: Conditions) -> [EngineAction] {
        var actions: [EngineAction] = []
        actions.reserveCapacity(batch.count + 4)
        let stored = batch.filter { $0.storedDecision != nil }
        if !stored.isEmpty { actions.append(.logRefreshes(stored)) }
        let slotsBefore = slots.count
        updateHealth(after: stored)
        chargeSecondRequests(of: batch, at: conditions.instant)
        var unsent: [GrantID: Int64] = [:]
        for refresh in batch {
            let id = refresh.grant.id
            assert(isStopping || slots[id]?.refresh === refresh, "a refresh was delivered twice")
            switch refresh.phase {
            case .stored(let result, let decision):
                recordResponse(result, of: refresh, under: conditions)
                apply(result, decision, of: refresh, under: conditions, &actions)
                freeSlot(of: id, as: .committed(result, decision), &actions)
            case .ended(let result?) where result.isNotSent:
                unsent[id] = refresh.claim.number
            case .ended(let result):
                if let result { recordResponse(result, of: refresh, under: conditions) }
                freeSlot(of: id, as: .abandoned, &actions)
            case .claimed, .sent, .answered, .read:
                preconditionFailure("a refresh was delivered before its end")
            }
        }
        actions += updateReach()
        if slots.count < slotsBefore { addActionsOfFreeSlots(&actions) }
        // The results after these must not wait for it.
        if !unsent.isEmpty { actions.append(.release(unsent, end: .abandoned)) }
        return actions
    }

    /// Takes over the health of each client as the last result of a batch left it, before any of them is applied.
    private mutating func updateHealth(after stored: [Refresh]) {
        var updated: [String] = []
        for refresh in stored.reversed() {
            let client = refresh.grant.clientID
            guard let stored = refresh.storedDecision, !stored.isPlain, !updated.contains(client) else { continue }
            updateHealth(stored.decision.health, of: client)
            updated.append(client)
        }
    }

    /// Counts the requests that answered challenges, which were sent at once. The next ones wait for the pace instead.
    private mutating func chargeSecondRequests(of batch: [Refresh], at instant: BootInstant) {
        let instant = sharedInstant(at: instant)
        for refresh in batch where refresh.hasAnsweredChallenge {
            gates[refresh.grant.clientID]?.pacer.charge(1, at: instant)
        }
    }

    /// Records what a response shows about the endpoint, whether it is stored or not.
    private mutating func recordResponse(_ result: RefreshResult, of refresh: Refresh, under conditions: Conditions) {
        if case .granted = result.answer, let latency = result.latency {
            inFlightLimit.recordAnswer(latency, at: conditions.instant)
        }
        if refresh.needsTokenRequest {
            reach.record(result.answer, of: refresh.grant.clientID, at: conditions.now)
        }
    }

    /// Takes over the consequences of a committed decision for the schedule and the client.
    private mutating func apply(
        _ result: RefreshResult,
        _ stored: StoredDecision,
        of refresh: Refresh,
        under conditions: Conditions,
        _ actions: inout [EngineAction]
    ) {
        let client = refresh.grant.clientID
        let effect = stored.decision.effect
        updateCopySuspicion(result, stored, about: refresh, at: conditions.instant, &actions)
        if let change = effect.breakerChange { actions.append(.logBreaker(change, client: client)) }
        if effect.limitsChanged, let pacer = gates[client]?.pacer {
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
        // Two fields, because reading the whole grant copies it. It can belong to another client since the claim.
        let next = (dueAt: stored.decision.grant?.dueAt, client: stored.decision.grant?.clientID)
        if let dueAt = next.dueAt, let storedClient = next.client, share.owns(refresh.grant.id) {
            expect(refresh.grant.id, of: storedClient, dueAt: dueAt, at: conditions.now)
        }
        if stored.decision.needsHealthyGrant, !isStopping,
            gates[client]?.takeHealthyGrantRefresh(at: conditions.instant) == true
        {
            actions.append(.refreshHealthyGrant(client: client))
        }
        if effect.endsOutage { actions.append(.expediteRetries(client: client)) }
        if !stored.recalled.isEmpty { nextScan = conditions.instant }
    }

    private mutating func updateCopySuspicion(
        _ result: RefreshResult,
        _ stored: StoredDecision,
        about refresh: Refresh,
        at instant: BootInstant,
        _ actions: inout [EngineAction]
    ) {
        let client = refresh.grant.clientID
        guard var first = gates[client]?.copySuspicion else { return }
        defer { gates[client]?.copySuspicion = first }
        switch result.answer {
        case .granted:
            if first.succeed() { actions.append(.logSuspectedCopy(client: client, isSuspected: false)) }
        case .failed(.invalidGrant, _) where stored.decision.grant?.isProven ?? false:
            let waited = refresh.grant.awaitsConfirmation
            if first.refuse(refresh.grant.id, awaitedConfirmation: waited, at: instant) {
                actions.append(.logSuspectedCopy(client: client, isSuspected: true))
            }
        case .flawed, .failed, .withoutRefreshToken, .unreadable, .revocation: break
        }
    }

    /// Refreshes have ended without a result.
    ///
    /// Their leases were released, will expire, or were never taken.
    mutating func freeSlots(of ids: some Sequence<GrantID>, as completion: RefreshCompletion) -> [EngineAction] {
        var actions: [EngineAction] = []
        freeSlots(of: ids, as: completion, &actions)
        return actions
    }

    /// `true` if leases should be released: while the store fails, a stop does not wait for it, and the leases expire.
    func mayRelease(under conditions: Conditions) -> Bool {
        !isStopping || !conditions.isCommitFailing && claimBackOff.failures == 0
    }

    /// Frees slots, and adds the actions that follow.
    mutating func freeSlots(
        of ids: some Sequence<GrantID>,
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

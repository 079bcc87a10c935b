import Base
import GoogleOAuth
import Storage

/// The execution of actions.
extension RefreshEngine {
    /// Executes actions in order.
    ///
    /// Calls of the store run in tasks of their own, so that the caller does not wait.
    func execute(_ actions: [EngineAction]) {
        for action in actions { execute(action) }
    }

    private func execute(_ action: EngineAction) {
        switch action {
        case .wakeLoop:
            wakeLoop()
            for waiter in slotWaiters { waiter.resume() }
            slotWaiters = []
        case .send(let refreshes): send(refreshes)
        case .cancel(let cancel): cancel()
        case .release(let claims, let end): Task { await release(claims, end: end) }
        case .complete(let signal, let completion): signal.complete(completion)
        case .logRefreshes(let refreshes): log.committed(refreshes, at: time.now)
        case .logBreaker(let change, let client): log.breaker(change, client: client)
        case .logHold(let client, let isHeld): log.hold(of: client, isHeld: isHeld)
        case .logPace(let client, let ceiling, let paused, let reason):
            log.pacer(client: client, ceiling: ceiling, paused: paused, reason: reason)
        case .logReachLost(let code): log.reachLost(code: code, worker: configuration.workerName)
        case .logReachRestored: log.reachRestored()
        case .expediteRetries(let client): expediteRetries(of: client)
        case .askWitness(let client): askWitness(of: client)
        case .expectResults(let inFlight): committer.expect(inFlight: inFlight)
        case .reportIdle:
            for waiter in idleWaiters { waiter.resume() }
            idleWaiters = []
        }
    }

    /// Handles refreshes whose results are committed, or never will be.
    func finish(_ batch: [FinishedRefresh]) { execute(state.finished(batch, at: conditions)) }

    private func send(_ refreshes: [InFlightRefresh]) {
        let committer = committer
        let revocations = refreshes.filter(\.isRevocation)
        for refresh in revocations {
            let task = Task { committer.add(await revoke(refresh), of: refresh) }
            state.sent([(refresh.grant.id, { @Sendable in task.cancel() })])
        }
        let requests = revocations.isEmpty ? refreshes : refreshes.filter { !$0.isRevocation }
        state.sent(dispatcher.send(requests, for: committer))
    }

    /// Revokes at Google, unless the revocation would also end a grant that was brought after the disconnect.
    private func revoke(_ refresh: InFlightRefresh) async -> RefreshResult {
        let answer: RefreshResult.Answer
        do {
            let (id, now) = (refresh.grant.id, time.now)
            if try await store.transact({ try GrantEnding.endIfShared(id, in: $0, at: now) }) {
                return await dispatcher.revoke(refresh)
            }
            answer = .failed(.notSent(code: "connected_again"), retryAfter: nil)
        } catch {
            reportStoreFailure(error, waiting: 1)
            answer = .revocation(failure: .unavailable(code: "store"))
        }
        return RefreshResult(attempt: refresh.attempt, answer: answer)
    }

    /// Releases leases unused: the grants are due for any worker.
    private func release(_ claims: [GrantID: Int64], end: RefreshCompletion) async {
        // On failure the leases expire by themselves.
        if state.mayRelease(under: conditions) {
            do {
                try await store.release(claims)
            } catch {
                reportStoreFailure(error, waiting: claims.count)
            }
        }
        execute(state.ended(claims.keys, as: end))
    }
}

/// One effect that ``RefreshEngineState`` asks for.
enum EngineAction: Sendable {
    /// Runs another iteration of the loop.
    case wakeLoop
    /// Sends the requests of claimed grants.
    case send([InFlightRefresh])
    /// Cancels a request.
    case cancel(@Sendable () -> Void)
    /// Releases leases in the store, and then reports them as released with this end.
    case release([GrantID: Int64], end: RefreshCompletion)
    /// Wakes the callers that wait for a refresh.
    case complete(CompletionSignal, RefreshCompletion)
    /// Logs refreshes whose results are committed.
    case logRefreshes([FinishedRefresh])
    case logBreaker(Breaker.Change, client: String)
    /// Logs that a client is held because its first grants were refused, or that this has ended.
    case logHold(client: String, isHeld: Bool)
    case logPace(client: String, ceiling: Double, paused: Duration, reason: String)
    /// Logs that this worker gets no answers while others do, with the code of the last failure.
    case logReachLost(code: String)
    /// Logs that this worker gets answers again.
    case logReachRestored
    /// Makes the grants of a client due that an outage left in back-off.
    case expediteRetries(client: String)
    /// Refreshes a healthy grant of a client early, to see if the client is at fault.
    case askWitness(client: String)
    /// Updates the committer's number of refreshes in flight.
    case expectResults(inFlight: Int)
    /// Continues the tasks that wait until nothing is in flight, such as a stop.
    case reportIdle
}

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
                inFlightLimit.record(latency, at: conditions.instant)
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
        if decision.needsWitness, !isStopping, gates[client]?.mayAskWitness(at: conditions.instant) ?? false {
            actions.append(.askWitness(client: client))
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
                actions.append(.logHold(client: client, isHeld: false))
            }
        case .failed(.invalidGrant, _) where decision.grant?.isProven ?? false:
            let wasInDoubt = GrantReason.mustNotComeEarly.contains(refresh.grant.reason)
            let isHeld =
                gates[client]?.firstAnswers?.refuse(refresh.grant.id, wasInDoubt: wasInDoubt, at: instant) ?? false
            if isHeld { actions.append(.logHold(client: client, isHeld: true)) }
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

/// The slot of one refresh in flight, from just before its claim until its result is committed.
struct InFlightSlot: Sendable {
    /// Signals the end of the refresh to all callers that wait for it.
    let completion = CompletionSignal()
    /// The refresh, or `nil` until the grant is claimed.
    var refresh: InFlightRefresh?
    /// Cancels the request.
    var cancel: (@Sendable () -> Void)?
}

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
        case .cancel(let refresh): refresh.cancel()
        case .release(let claims, let end): Task { await release(claims, end: end) }
        case .complete(let signal, let completion): signal.complete(completion)
        case .logRefreshes(let refreshes): log.committed(refreshes, at: time.now)
        case .logBreaker(let change, let client): log.breaker(change, client: client)
        case .logSuspectedCopy(let client, let isSuspected): log.suspectedCopy(of: client, isSuspected: isSuspected)
        case .logPace(let client, let ceiling, let paused, let reason):
            log.pacer(client: client, ceiling: ceiling, paused: paused, reason: reason)
        case .logReachLost(let code): log.reachLost(code: code, worker: configuration.workerName)
        case .logReachRestored: log.reachRestored()
        case .expediteRetries(let client): expediteRetries(of: client)
        case .refreshHealthyGrant(let client): refreshHealthyGrant(of: client)
        case .expectResults(let inFlight): committer.expect(inFlight: inFlight)
        case .reportIdle:
            for waiter in idleWaiters { waiter.resume() }
            idleWaiters = []
        }
    }

    /// Handles refreshes whose decisions are committed, or that have ended without one.
    ///
    /// `storedIn` is the time that the store took for them, or `nil` if they are not committed.
    func delivered(_ batch: [Refresh], storedIn: Duration?) {
        if let storedIn { state.inFlightLimit.recordCommit(storedIn, at: time.sinceBoot) }
        execute(state.delivered(batch, under: conditions))
    }

    private func send(_ refreshes: [Refresh]) {
        let committer = committer
        let revocations = refreshes.filter(\.isRevocation)
        for refresh in revocations {
            let task = Task { committer.add(refresh, with: await revoke(refresh)) }
            refresh.onCancel { task.cancel() }
        }
        let requests = revocations.isEmpty ? refreshes : refreshes.filter { !$0.isRevocation }
        dispatcher.send(requests, for: committer)
    }

    /// Revokes at Google, unless the revocation would also end a grant that was brought after the disconnect.
    private func revoke(_ refresh: Refresh) async -> RefreshResult {
        let answer: RefreshResult.Answer
        do {
            let (id, now) = (refresh.grant.id, time.now)
            if try await store.transact({ try GrantDisconnection.mustRevoke(id, in: $0, at: now) }) {
                return await dispatcher.revoke(refresh)
            }
            answer = .failed(.notSent(code: "connected_again"), retryAfter: nil)
        } catch {
            reportStoreFailure(error, waiting: 1)
            answer = .revocation(failure: .unavailable(code: "store"))
        }
        return RefreshResult(claim: refresh.claim, answer: answer)
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
        execute(state.freeSlots(of: claims.keys, as: end))
    }
}

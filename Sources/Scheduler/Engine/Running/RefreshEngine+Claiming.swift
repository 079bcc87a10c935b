import Base
import Storage

/// Calls of the store that come before a request: the claim, and the probe.
extension RefreshEngine {
    typealias ClaimRequest = RefreshEngineState.ClaimRequest
    typealias ClaimOutcome = RefreshEngineState.ClaimOutcome

    /// Claims grants and sends those that were claimed; returns the completions to await, and the outcome of the claim.
    ///
    /// A grant that is in flight already is joined.
    @discardableResult
    func claimAndSend(
        _ ids: [GrantID],
        dueBy: Timestamp?
    ) async -> (completions: [CompletionSignal], outcome: ClaimOutcome) {
        let (request, completions) = state.reserve(ids, dueBy: dueBy)
        let outcome = await claim(request)
        reportProgress()
        return (completions, outcome)
    }

    /// Claims the grants of a request and sends those that were claimed.
    @discardableResult
    func claim(_ request: ClaimRequest) async -> ClaimOutcome {
        guard !request.ids.isEmpty else { return ClaimOutcome() }
        guard state.mayClaim(under: conditions) else {
            execute(state.abandon(request))
            return ClaimOutcome(lost: request.ids.count)
        }
        let leasesEnd = time.sinceBoot + Lease.span
        do {
            let grants = try await store.claim(
                request.ids,
                dueBy: request.dueBy,
                owner: configuration.workerName,
                for: Lease.span,
                takesOver: state.takeoverPause.isOver(at: time.sinceBoot)
            )
            state.takeoverPause.reached(at: time.sinceBoot)
            let (outcome, actions) = state.claimed(grants, for: request, leasesEnd: leasesEnd)
            execute(actions)
            return outcome
        } catch {
            let failure = state.claimFailed(
                request,
                concernsOneRow: (error as? StoreError)?.mayConcernOneRow ?? false,
                at: time.sinceBoot,
                unit: random.nextUnit()
            )
            switch failure {
            case .claimEach(let requests):
                return await claimEach(requests)
            case .abandon(let outcome, let actions):
                reportStoreFailure(error, waiting: request.ids.count)
                execute(actions)
                return outcome
            }
        }
    }

    private func claimEach(_ requests: [ClaimRequest]) async -> ClaimOutcome {
        var all = ClaimOutcome()
        for request in requests {
            if all.hasFailed {
                execute(state.abandon(request))
                all.lost += request.ids.count
                continue
            }
            let outcome = await claim(request)
            all.lost += outcome.lost
            all.hasFailed = outcome.hasFailed
            reportProgress()
        }
        return all
    }

    /// Asks the store, which all workers share, if this worker may probe.
    func beginProbe(_ client: String) async -> Bool {
        let (deadline, now) = (configuration.leaseNeededToSend, time.now)
        do {
            let (mayProbe, health, effect) = try await store.transact { transaction in
                var cache = ClientHealthCache(transaction: transaction, at: now)
                var health = try cache.health(of: client)
                let mayProbe = health.breaker.beginProbe(at: transaction.leaseTime.instant, deadline: deadline)
                cache.set(health, of: client)
                try cache.save()
                return (mayProbe, health, cache.takeEffect(of: client) ?? ClientEffect())
            }
            state.updateHealth(health, of: client)
            if let change = effect.breakerChange { log.breaker(change, client: client) }
            if effect.endsOutage { expediteRetries(of: client) }
            return mayProbe
        } catch {
            reportStoreFailure(error, waiting: 1)
            reportProgress()
            return false
        }
    }

    /// Reads the instant of the clock that all workers share.
    func readSharedClock() async throws {
        let reading = try await store.leaseTime()
        state.updateSharedClock(reading, at: time.sinceBoot)
    }

    /// Reads the stored health of all clients.
    func readHealth() async throws {
        try await readSharedClock()
        state.updateHealth(try await store.clientHealth())
        state.takeoverPause.reached(at: time.sinceBoot)
    }
}

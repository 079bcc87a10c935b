import Base
import Storage

/// The dispatch: queued grants are claimed and sent as the limits of their client allow.
extension RefreshEngine {
    /// Claims and sends the grants that can go now, and returns the wait until more can go.
    func dispatchQueues() async -> Duration? {
        var round = state.beginRound()
        while true {
            switch state.nextStep(of: &round, under: conditions) {
            case .claim(let ids, let client, let takenAt):
                let request = state.reserve(ids, dueBy: time.now).request
                // Without those that a caller refreshes already.
                let joined = ids.count - request.ids.count
                let unsent = await claim(request).unsent + joined
                state.refund(unsent, of: client, takenAt: takenAt)
                if unsent == ids.count { state.claimWasEmpty(of: client) }
            case .askForProbe(let client): await probe(client)
            case .end(let wait): return wait
            }
        }
    }

    /// Sends one grant through an open breaker, unless another worker is doing so.
    private func probe(_ client: String) async {
        guard await beginProbe(client) else { return }
        while let id = state.nextToProbe(of: client, at: time.sinceBoot) {
            let hasFailed = await claim(state.reserve([id], dueBy: time.now).request).hasFailed
            if state.isProbe(id) { return log.breakerProbe(client: client) }
            guard !hasFailed else { return }
        }
    }

    /// Asks the store, which all workers share, if this worker can probe.
    func beginProbe(_ client: String) async -> Bool {
        let (deadline, now) = (configuration.leaseNeededToSend, time.now)
        do {
            let (mayProbe, health, effect) = try await store.transact { transaction in
                var cache = ClientHealthCache(transaction: transaction, now: now)
                var health = try cache.health(of: client)
                let mayProbe = health.breaker.beginProbe(at: transaction.leaseTime.instant, deadline: deadline)
                cache.set(health, of: client)
                try cache.save()
                return (mayProbe, health, cache.takeEffect(of: client))
            }
            state.updateHealth(health, of: client)
            if let change = effect?.breakerChange { log.breaker(change, client: client) }
            if effect?.endsOutage ?? false { expediteRetries(of: client) }
            return mayProbe
        } catch {
            reportStoreFailure(error, waiting: 1)
            reportProgress()
            return false
        }
    }
}

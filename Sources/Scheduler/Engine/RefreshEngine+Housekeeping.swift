import Base
import Storage

/// The engine's periodic tasks: its leases and the machine's clock.
extension RefreshEngine {
    private static let retryBatchSize = 500
    /// The interval at which to call ``recordClock()``.
    package static let clockRecordInterval: Duration = .seconds(5)
    /// A longer time without a successful write is an outage of the store.
    ///
    /// It is shorter than the 20 s that a lease has left at least when the outage begins: leases are renewed every ten
    /// seconds.
    static let maximumTimeBetweenWrites: Duration = clockRecordInterval + .seconds(7)

    /// Renews the leases of everything in flight.
    ///
    /// Call it after each third of a lease's duration.
    package func renewLeases() async {
        let refreshes = state.refreshes
        guard !refreshes.isEmpty else { return }
        let leaseEnd = time.sinceBoot + Lease.span
        do {
            let claims = Dictionary(uniqueKeysWithValues: refreshes.map { ($0.grant.id, $0.claim.number) })
            let renewed = try await store.renew(claims, for: Lease.span)
            if !renewed.isEmpty { state.takeoverPause.written(at: time.sinceBoot) }
            for refresh in refreshes where renewed.contains(refresh.grant.id) { refresh.leaseRenewed(until: leaseEnd) }
        } catch {
            reportStoreFailure(error, waiting: refreshes.count)
        }
    }

    /// The interval at which to call ``renewLeases()``.
    package var leaseRenewalInterval: Duration { Lease.span / 3 }

    /// Makes the grants due at once that an outage of the endpoint, or a fault of the client, left in back-off.
    ///
    /// It runs outside the transactions that store results, in batches: after a long outage there might be millions of
    /// grants, and results must not wait for them.
    func expediteRetries(of client: String) {
        let (store, log, dueBy) = (store, log, time.now)
        // The end of a later outage makes the grants of earlier ones due too.
        let previous = outageRetries[client]
        previous?.cancel()
        outageRetries[client] = Task {
            await previous?.value
            do {
                try await changePages(after: GrantID?.none) { cursor in
                    let next = try await store.expediteRetries(
                        ofClient: client,
                        dueBy: dueBy,
                        after: cursor,
                        atMost: Self.retryBatchSize
                    )
                    // The cursor is itself optional: `nil` stands for the beginning, and does not end the loop.
                    return (0, next.map(Optional.some))
                }
            } catch {
                // The remaining grants are tried at the end of their back-off.
                log.reportStoreFailure(error, waiting: 0)
            }
            storeChanged()
        }
    }

    /// Makes a healthy grant of a client due: its success shows that grants which are refused are at fault themselves.
    ///
    /// Without it, a client with few grants would not know for most of an hour. One quick refresh does no harm to a
    /// grant (``DuePolicy/quickRefreshesAllowed``).
    func refreshHealthyGrant(of client: String) {
        let (store, now) = (store, time.now)
        healthyGrantSearch = Task {
            do {
                let next = try await store.due(
                    ofClient: client,
                    by: now + .seconds(86_400),
                    after: nil,
                    atMost: Self.retryBatchSize
                ).map(\.id)
                try await store.transact { transaction in
                    try transaction.willRead(grants: next, healthOf: [])
                    let healthy = try next.lazy.compactMap { try transaction.grant($0) }
                        .first { $0.state == .active && $0.isProven && $0.quickRefreshes == 0 }
                    guard var healthy else { return }
                    healthy.makeDueNow(at: now)
                    try transaction.update(healthy)
                }
            } catch {
                // The next refusal asks again.
                return
            }
            storeChanged()
        }
    }

    /// Detects a step of the wall clock, and repairs the times that a clock ahead of time stored.
    ///
    /// The first call of a process compares with the reading that the last process stored, so a step between two runs
    /// is detected too.
    func checkClock() async {
        let reading = currentReading
        guard state.clock.isDue(at: reading) else { return }
        do {
            let stored = state.clock.isFirst ? try await store.clockReading() : nil
            switch state.clock.compare(reading, stored: stored) {
            case .nothing: return
            case .record: try await store.record(reading)
            case .repair(let step, let isNew):
                if isNew { log.clockStep(step) }
                if step < .zero { log.rescheduled(try await store.rescheduleGrantsStoredAfter(reading.now)) }
                try await restartDoubts(after: step, at: reading.now)
                // Until this is stored, the next process finds the same step.
                try await store.record(reading)
                state.clockRepaired(at: time.sinceBoot)
            }
        } catch {
            reportStoreFailure(error, waiting: inFlight)
        }
    }

    /// Makes the doubts about refusals last as long as they must by the clock as it is now.
    ///
    /// Example: 500 grants are refused in a wave. Five seconds later the clock goes forward by an hour. Without this,
    /// every doubt would count as an hour old, and the next refusal would end it. Several workers can do this for the
    /// same step, one after the other.
    private func restartDoubts(after step: Duration, at now: Timestamp) async throws {
        guard step >= Self.stepThatRestartsDoubts || step <= .zero - Self.stepThatRestartsDoubts else { return }
        let confirmation = now + RefreshRules.firstConfirmationAfter
        let doubted = try await store.restartDoubts(at: now, confirmingAt: confirmation)
        for client in Set(try await store.clientHealth().keys).union(doubted) {
            try await store.transact { transaction in
                var healths = ClientHealthCache(transaction: transaction, now: now)
                var health = try healths.health(of: client)
                health.clockStepped(by: step, hasDoubts: doubted.contains(client), at: now)
                healths.set(health, of: client)
                try healths.save()
            }
        }
    }

    /// A smaller step lets a confirmation come early by no more than that.
    private static let stepThatRestartsDoubts: Duration = .seconds(60)

    /// Continues the clock of deletions, and stores the reading of the clocks for the next process, unless a step
    /// before it is still to be repaired.
    package func recordClock() async {
        do {
            try await store.advanceDeletionClock(by: time)
            // This write comes even while nothing is due.
            state.takeoverPause.written(at: time.sinceBoot)
            guard state.clock.mayRecord else { return }
            try await store.record(currentReading)
        } catch {
            reportStoreFailure(error, waiting: inFlight)
        }
    }

    private var currentReading: ClockReading { store.reading(of: time) }
}

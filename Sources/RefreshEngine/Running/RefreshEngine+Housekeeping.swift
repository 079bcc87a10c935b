import Clocks
import Scheduler
import Store

/// The engine's upkeep: its leases and the machine's clock.
extension RefreshEngine {
    /// The difference between the progress of the wall clock and of the boot clock that counts as a step.
    private static let tolerance: Duration = .seconds(2)
    private static let hasteningBatch = 500

    /// Renews the leases of everything in flight; to be called after a third of a lease's duration.
    package func renewLeases() async {
        let aloft = flights.values.compactMap(\.flight)
        guard !aloft.isEmpty else { return }
        let span = configuration.leaseSpan
        let standsUntil = time.sinceBoot + span
        do {
            let claims = Dictionary(uniqueKeysWithValues: aloft.map { ($0.grant.id, $0.claim) })
            let renewed = try await store.renew(claims, for: span)
            for flight in aloft where renewed.contains(flight.grant.id) { flight.leaseRenewed(until: standsUntil) }
        } catch {
            note(error, waiting: aloft.count)
        }
    }

    /// The interval at which to call ``renewLeases()``.
    package var leaseRenewalInterval: Duration { configuration.leaseSpan / 3 }

    /// Makes the grants due at once that an outage of the endpoint left in back-off.
    ///
    /// It runs outside the transactions that store results, in batches: after a long outage there may be millions of
    /// grants, and no result may wait for them.
    func hastenRetries(of client: String) {
        let (store, log, dueBy) = (store, log, time.now)
        let former = hastening
        hastening = Task {
            // The end of the latest outage supersedes earlier ones.
            await withTaskCancellationHandler {
                await former?.value
            } onCancel: {
                former?.cancel()
            }
            do {
                try await changePages(after: GrantID?.none) { cursor in
                    let next = try await store.hastenRetries(
                        ofClient: client,
                        dueBy: dueBy,
                        after: cursor,
                        atMost: Self.hasteningBatch
                    )
                    // The cursor is itself optional: `nil` stands for the beginning, and does not end the loop.
                    return ChangedPage(changed: 0, next: next.map(Optional.some))
                }
            } catch {
                // The remaining grants are tried at the end of their back-off.
                log.storeTrouble(error, waiting: 0)
            }
            storeChanged()
        }
    }

    /// Detects a step of the wall clock, and repairs the times that a clock ahead of time stored.
    ///
    /// The first call of a process compares with the reading that the last process stored, so a step between two runs
    /// is detected too.
    package func watchClock() async {
        do {
            let reading = presentReading
            if clockWitness.map({ reading.sinceBoot - $0.sinceBoot < .seconds(1) }) ?? false { return }
            let isRepeated = readingBeforeStep != nil
            let isFirst = clockWitness == nil
            let witness = isFirst ? try await store.clockReading() : clockWitness
            clockWitness = reading
            let former = readingBeforeStep ?? witness ?? reading
            let step = Self.step(from: former, to: reading)
            guard step.magnitude > Self.tolerance else {
                readingBeforeStep = nil
                if isFirst { try await store.record(reading) }
                return
            }
            // The reading is kept until everything below is done, so that the next turn detects the same step again.
            readingBeforeStep = former
            if !isRepeated { log.clockStep(step) }
            if step < .zero { log.rescheduled(try await store.rescheduleGrantsStoredAfter(reading.now)) }
            // Until this is stored, the next process finds the same step.
            try await store.record(reading)
            readingBeforeStep = nil
            forgetWindow()
        } catch {
            note(error, waiting: flights.count)
        }
    }

    /// Stores the reading of the clocks for the next process, unless a step before it is still to be repaired.
    package func recordClock() async {
        guard clockWitness != nil, readingBeforeStep == nil else { return }
        do {
            try await store.record(presentReading)
        } catch {
            note(error, waiting: flights.count)
        }
    }

    private var presentReading: ClockReading {
        ClockReading(now: time.now, sinceBoot: time.sinceBoot, bootID: store.bootID)
    }

    /// Returns how far the wall clock moved beyond the time that passed.
    ///
    /// Across a restart of the machine the passed time is unknown, so only a clock that went backwards is detected.
    static func step(from former: ClockReading, to reading: ClockReading) -> Duration {
        let byWall = reading.now - former.now
        guard former.bootID == reading.bootID else { return min(byWall, .zero) }
        return byWall - (reading.sinceBoot - former.sinceBoot)
    }

    /// Drops the window of the due index, which was ordered by the former clock.
    private func forgetWindow() {
        heap = .init()
        clients = [:]
        for client in gates.keys { gates[client]?.cursor = nil }
        nextScan = time.sinceBoot
    }
}

extension Duration {
    fileprivate var magnitude: Duration { self < .zero ? .zero - self : self }
}

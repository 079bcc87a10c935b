import Clocks
import Scheduler
import Store

/// What the engine looks after beside refreshing: its leases and the machine's clock.
extension RefreshEngine {
    /// How far the wall clock may run apart from the boot clock between two turns before it counts as stepped.
    private static let tolerance: Duration = .seconds(2)
    private static let hasteningBatch = 500

    /// Renews the leases of everything in flight; to be called at a third of a lease's life.
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

    /// How often ``renewLeases()`` is to be called.
    package var leaseRenewalInterval: Duration { configuration.leaseSpan / 3 }

    /// Makes the grants due that an outage of the endpoint left in back-off.
    ///
    /// Beside the transactions that store results, a batch at a time: after a long outage there may be millions, and no result
    /// may wait for them.
    func hastenRetries(of client: String) {
        let (store, log, dueBy) = (store, log, time.now)
        let former = hastening
        hastening = Task {
            // The end of the last one ends those before it.
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
                    // The cursor is itself optional: none stands for the beginning, and ends nothing.
                    return ChangedPage(changed: 0, next: next.map(Optional.some))
                }
            } catch {
                // They are tried at the end of their back-off.
                log.storeTrouble(error, waiting: 0)
            }
            storeChanged()
        }
    }

    /// Notices a step of the wall clock, and mends what was stored by a clock that was ahead.
    ///
    /// The first call of a process compares with what the last process stored, so a step between two runs is noticed too.
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
            // Until everything below is done, the next turn finds the same step again.
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

    /// How far the wall clock moved beyond the time that passed.
    ///
    /// Across a restart of the machine nobody knows how much time passed: only a clock that went backwards shows.
    static func step(from former: ClockReading, to reading: ClockReading) -> Duration {
        let byWall = reading.now - former.now
        guard former.bootID == reading.bootID else { return min(byWall, .zero) }
        return byWall - (reading.sinceBoot - former.sinceBoot)
    }

    /// Drops the window of the due index, which was ordered by the clock as it was.
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

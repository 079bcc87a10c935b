import Clocks
import Observability
import Scheduler
import Store
import Synchronization

/// Turns what arrives into stored grants: many in one transaction, none ever dropped.
///
/// While one transaction runs the next arrivals gather, so the batch is as large as the load asks for. A batch that cannot
/// be stored is tried again until it is, or until the worker gives up at the end of its stop deadline; its grants are not
/// called again before. Answers with tokens that are still not stored then go to the spill.
actor Settler {
    /// What arrived and waits, for whoever brings it from any thread.
    private struct Intake {
        var waiting: [Arrival] = []
        /// Whether somebody waits for one of them.
        var isAwaited = false
        var isWriting = false
        /// The time of the first failure since a result was stored last.
        var failingSince: BootInstant?
        var hasGivenUp = false

        /// Adds arrivals; answers whether a round of writing is to begin.
        mutating func add(_ arrivals: [Arrival]) -> Bool {
            waiting += arrivals
            if arrivals.contains(where: \.flight.isForced) { isAwaited = true }
            defer { isWriting = true }
            return !isWriting
        }
    }

    /// What is told of one arrival.
    private struct Entry {
        let flight: Flight
        let report: Courier.Report
    }

    /// How many arrivals one transaction takes: beyond about a hundred rows it only holds the writer longer.
    private static let batchSize = 100
    /// A batch this large is worth its commit.
    private static let worthwhileBatch = 50
    /// How long a smaller one waits for the answers that are still on their way.
    private static let gatheringTime: Duration = .milliseconds(5)

    private let store: any GrantStore
    private let time: any TimeSource
    private let random: any RandomSource
    private var rules: RefreshRules
    private let backOff = BackOff(first: .milliseconds(500), longest: .seconds(5))
    private let spill: (any ResultSpill)?
    private let onTrouble: @Sendable (_ error: any Error, _ waiting: Int) -> Void
    private let deliver: @Sendable ([Landed]) async -> Void

    private nonisolated let intake = Mutex(Intake())
    /// How many flights there are, those that wait here included.
    private nonisolated let aloft = Atomic(0)
    /// Whether the last try to store something failed for a reason that passes.
    private nonisolated let fails = Atomic(false)
    /// What is being written, as long as its fate is not told.
    private var inHand: [Entry] = []
    /// What the store refused for a reason that does not pass, and answers that could not be sealed; it comes again when the
    /// others have been stored.
    private var aside: [Arrival] = []
    /// Answers with tokens that the store did not take.
    ///
    /// One that is being written to the spill counts as lost until it is there: a process that ends meanwhile leaves it nowhere.
    private(set) var unstored = UnstoredResults()
    private var lastDelivery: Task<Void, Never>?

    /// Begins with nothing to store.
    ///
    /// `onTrouble` hears when the store, sealing or the spill fails, with how many results wait. `deliver` hears of each arrival
    /// once, when its result is durable or given up; batch by batch, in order.
    init(
        store: any GrantStore,
        rules: RefreshRules,
        time: any TimeSource,
        random: any RandomSource,
        spill: (any ResultSpill)? = nil,
        onTrouble: @escaping @Sendable (_ error: any Error, _ waiting: Int) -> Void,
        deliver: @escaping @Sendable ([Landed]) async -> Void
    ) {
        self.store = store
        self.rules = rules
        self.time = time
        self.random = random
        self.spill = spill
        self.onTrouble = onTrouble
        self.deliver = deliver
    }

    func use(_ rules: RefreshRules) {
        self.rules = rules
    }

    /// Hears how many flights there are, from any thread.
    nonisolated func expect(aloft count: Int) {
        aloft.store(count, ordering: .relaxed)
    }

    /// The time since results can no longer be stored; `nil` while they can.
    nonisolated var failsFor: Duration? {
        let now = time.sinceBoot
        return intake.withLock(\.failingSince).map { now - $0 }
    }

    /// Takes what arrived, from any thread.
    ///
    /// Unless a caller waits for it, it may be kept for a moment for others of those that are aloft.
    nonisolated func take(_ arrival: Arrival) {
        begin(with: [arrival])
    }

    private nonisolated func begin(with arrivals: [Arrival]) {
        guard intake.withLock({ $0.add(arrivals) }) else { return }
        Task { await writeAll() }
    }

    /// Whether results wait because the store fails: until it works, nothing more is to be asked for.
    nonisolated var isStoreFailing: Bool { fails.load(ordering: .relaxed) }

    /// Stops trying: the stop deadline has passed and the store still refuses, or everything in it was moved elsewhere.
    ///
    /// What waits, and what comes later, goes to the spill and is delivered as not stored. A commit that is under way is not
    /// waited for: what it stores all the same is found to be stored when the spill is recovered.
    func giveUp() async {
        intake.withLock { $0.hasGivenUp = true }
        let taken = inHand
        inHand = []
        let waiting = takeWaiting() + aside
        aside = []
        await keep(taken + readOrLose(waiting))
    }

    private func takeWaiting() -> [Arrival] {
        intake.withLock { intake in
            defer { intake.waiting = [] }
            return intake.waiting
        }
    }

    /// Reads answers for the last time; those that cannot be sealed even now are lost.
    private func readOrLose(_ arrivals: [Arrival]) -> [Entry] {
        arrivals.compactMap { arrival in
            do {
                return Entry(flight: arrival.flight, report: try arrival.report())
            } catch {
                onTrouble(error, 1)
                unstored.lost += 1
                tell([Landed(flight: arrival.flight, report: nil, settled: nil)])
                return nil
            }
        }
    }

    /// Saves answers with tokens to the spill, and tells that these are not stored.
    ///
    /// Every other answer would be given again to whoever asks again.
    private func keep(_ entries: [Entry]) async {
        let findings = entries.map(\.report.finding).filter(\.answer.bringsTokens)
        unstored.lost += findings.count
        if let spill, !findings.isEmpty {
            do {
                try await spill.save(findings)
                unstored.lost -= findings.count
                unstored.spilled += findings.count
            } catch {
                onTrouble(error, findings.count)
            }
        }
        tell(entries.map { Landed(flight: $0.flight, report: $0.report, settled: nil) })
    }

    private func writeAll() async {
        while let batch = await nextBatch() { await write(batch) }
    }

    /// The next arrivals, read; `nil` when there are none, which ends the round.
    private func nextBatch() async -> [Entry]? {
        let isSmall = intake.withLock { intake in
            let worthwhile = min(Self.worthwhileBatch, aloft.load(ordering: .relaxed))
            return !intake.waiting.isEmpty && intake.waiting.count < worthwhile && !intake.isAwaited
        }
        if isSmall { await pause(Self.gatheringTime) }
        let arrivals = intake.withLock { intake in
            intake.isAwaited = false
            intake.isWriting = !intake.waiting.isEmpty
            let batch = Array(intake.waiting.prefix(Self.batchSize))
            intake.waiting.removeFirst(batch.count)
            return batch
        }
        return arrivals.isEmpty ? nil : read(arrivals)
    }

    /// Reads answers; one that cannot be sealed now is kept and tried again.
    private func read(_ arrivals: [Arrival]) -> [Entry] {
        guard !intake.withLock(\.hasGivenUp) else { return readOrLose(arrivals) }
        var entries: [Entry] = []
        entries.reserveCapacity(arrivals.count)
        for arrival in arrivals {
            do {
                entries.append(Entry(flight: arrival.flight, report: try arrival.report()))
            } catch {
                onTrouble(error, 1)
                setAside(arrival)
            }
        }
        return entries
    }

    private func write(_ batch: [Entry]) async {
        let unasked = batch.filter(\.report.finding.answer.isNotSent)
        let asked = unasked.isEmpty ? batch : batch.filter { !$0.report.finding.answer.isNotSent }
        if !unasked.isEmpty { tell(unasked.map { Landed(flight: $0.flight, report: $0.report, settled: nil) }) }
        if !asked.isEmpty { await settle(asked) }
    }

    private func settle(_ batch: [Entry]) async {
        guard !intake.withLock(\.hasGivenUp) else { return await keep(batch) }
        inHand = batch
        await store(batch)
    }

    /// Stores a batch that is in hand, unless the worker gives up meanwhile, which takes it out of hand.
    private func store(_ batch: [Entry]) async {
        var failures = 0
        while !intake.withLock(\.hasGivenUp) {
            do {
                let settled = try await attempt(batch.map(\.report.finding))
                intake.withLock { $0.failingSince = nil }
                if fails.load(ordering: .relaxed) { fails.store(false, ordering: .relaxed) }
                guard release(batch) else { return }
                tell(zip(batch, settled).map { Landed(flight: $0.flight, report: $0.report, settled: $1) })
                return
            } catch {
                failures += 1
                if (error as? StoreError)?.mayPass == true {
                    let now = time.sinceBoot
                    intake.withLock { $0.failingSince = $0.failingSince ?? now }
                }
                onTrouble(error, batch.count + intake.withLock(\.waiting.count))
                let code = (error as? StoreError)?.code
                if (error as? StoreError)?.endsUse ?? false { return await giveUp() }
                // One finding that the store cannot take must not keep the others from being stored.
                if !((error as? StoreError)?.mayPass ?? false) {
                    if batch.count > 1 {
                        for entry in batch { await store([entry]) }
                    } else if release(batch) {
                        for entry in batch { setAside(Arrival(entry.flight, with: entry.report)) }
                    }
                    return
                }
                fails.store(true, ordering: .relaxed)
                readWhatWaits()
                if code == .diskFull, await spill?.freeReserve() ?? false { continue }
                await pause(backOff.delay(failures: failures, remainingLife: nil, unit: random.nextUnit()))
            }
        }
    }

    /// Takes a batch out of hand; returns `false` when ``giveUp()`` has taken it, which tells its fate.
    private func release(_ batch: [Entry]) -> Bool {
        guard !intake.withLock(\.hasGivenUp) else { return false }
        inHand.removeFirst(batch.count)
        return true
    }

    /// Reads what waits while the store fails: tokens wait for it sealed, and what was not sent does not wait.
    private func readWhatWaits() {
        var read: [Arrival] = []
        var unasked: [Landed] = []
        for entry in self.read(takeWaiting()) {
            if entry.report.finding.answer.isNotSent {
                unasked.append(Landed(flight: entry.flight, report: entry.report, settled: nil))
            } else {
                read.append(Arrival(entry.flight, with: entry.report))
            }
        }
        intake.withLock { $0.waiting.insert(contentsOf: read, at: 0) }
        if !unasked.isEmpty { tell(unasked) }
    }

    /// Delivers a batch after those before it, while the next one is being stored.
    private func tell(_ landed: [Landed]) {
        let former = lastDelivery
        lastDelivery = Task { [deliver] in
            await former?.value
            await deliver(landed)
        }
    }

    /// Lets the arrivals behind this one go first.
    private func setAside(_ arrival: Arrival) {
        aside.append(arrival)
        Task {
            await pause(backOff.longest)
            putBackWhatIsAside()
        }
    }

    private func putBackWhatIsAside() {
        guard !aside.isEmpty else { return }
        defer { aside = [] }
        begin(with: aside)
    }

    private func attempt(_ findings: [Finding]) async throws -> [Settled] {
        let rules = rules
        let now = time.now
        let units = findings.map { _ in random.nextUnit() }
        return try await store.storeResults { transaction in
            try transaction.willRead(
                grants: findings.map(\.attempt.grant),
                healthOf: Array(Set(findings.map(\.attempt.clientID)))
            )
            var book = HealthBook(transaction: transaction)
            let settled = try zip(findings, units).map { finding, unit in
                let moment = Moment(now: now, instant: transaction.leaseTime.instant, unit: unit)
                return try Self.apply(finding, at: moment, by: rules, in: transaction, book: &book)
            }
            try book.save()
            // Each gets its client's health as the whole batch left it.
            return try settled.map { settled in
                var settled = settled
                settled.health = try book.health(of: settled.finding.attempt.clientID)
                return settled
            }
        }
    }

    private static func apply(
        _ finding: Finding,
        at moment: Moment,
        by rules: RefreshRules,
        in transaction: any StoreTransaction,
        book: inout HealthBook
    ) throws -> Settled {
        let client = finding.attempt.clientID
        var health = try book.health(of: client)
        guard var grant = try transaction.grant(finding.attempt.grant) else {
            return Settled(finding: finding, ruling: Ruling(outcome: .void), grant: nil, health: health)
        }
        let ruling = rules.decide(finding, grant: &grant, health: &health, at: moment)
        try transaction.store(grant, after: ruling, at: moment.now)
        var settled = Settled(finding: finding, ruling: ruling, grant: grant, health: health)
        settled.recalled = try recall(ruling.recalls, except: grant.id, at: moment, in: transaction)
        book.set(health, of: client)
        return settled
    }

    /// Calls back the grants that the answers of a wave disconnected before it could be told from users who left.
    private static func recall(
        _ ids: [GrantID],
        except current: GrantID,
        at moment: Moment,
        in transaction: any StoreTransaction
    ) throws -> [GrantEvent] {
        var recalled: [GrantEvent] = []
        for id in Set(ids) where id != current {
            guard var grant = try transaction.grant(id) else { continue }
            let events = grant.recall(confirmAt: moment.now + RefreshRules.secondOpinionAfter, at: moment.now)
            guard !events.isEmpty else { continue }
            try transaction.update(grant)
            for event in events { try transaction.record(event) }
            recalled += events
        }
        return recalled
    }

    private func pause(_ span: Duration) async {
        do {
            try await Task.sleep(for: span)
        } catch {
            // A cancelled wait only makes the next try come sooner.
        }
    }
}

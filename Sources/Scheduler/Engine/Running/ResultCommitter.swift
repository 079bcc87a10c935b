import Base
import Storage
import Synchronization
import Telemetry

/// Commits results, many in one transaction; keeps each that contains tokens until it is stored or in the spill file.
///
/// While one transaction runs the next results gather, so the batch grows with the load. A batch that cannot be stored
/// is tried again until it is stored, or until the worker gives up at the end of its stop deadline; its grants are not
/// sent again before. Answers with tokens that are still not stored then go to the spill file.
actor ResultCommitter {
    /// The results that wait, and the condition of the store; any thread may add results.
    private struct SharedState {
        var waiting: [PendingResult] = []
        /// `true` if a caller waits for one of them.
        var isAwaited = false
        var isWriting = false
        /// The instant of the first failure since a result was last stored.
        var failingSince: BootInstant?
        var hasGivenUp = false

        /// Adds a result; returns `true` if the caller must start the writing.
        mutating func add(_ result: PendingResult) -> Bool {
            waiting.append(result)
            if result.refresh.isForced { isAwaited = true }
            defer { isWriting = true }
            return !isWriting
        }
    }

    /// One result that has been read, on its way to the store.
    struct ReadResult {
        let refresh: InFlightRefresh
        let report: RefreshDispatcher.Report
    }

    /// The number of results in one transaction: more than about a hundred rows only hold the writer longer.
    private static let batchSize = 100
    /// The size of a batch that is worth a commit.
    private static let worthwhileBatch = 50
    /// The longest time that a smaller batch waits for answers that are still in flight.
    private static let longestGathering: Duration = .milliseconds(15)

    private let store: any GrantStore
    private let time: any TimeSource
    private let random: any RandomSource
    private var rules: RefreshRules
    private var plainBatches = PlainBatches()
    private let backOff = BackOff(first: .milliseconds(500), longest: .seconds(5))
    private let spill: (any ResultSpill)?
    private let onFailure: @Sendable (_ error: any Error, _ waiting: Int) -> Void
    private let deliver: @Sendable ([FinishedRefresh]) async -> Void

    private nonisolated let shared = Mutex(SharedState())
    /// The number of refreshes in flight, including those whose results wait here.
    private nonisolated let inFlight = Atomic(0)
    /// `true` if the last attempt to store failed for a reason that may pass.
    private nonisolated let hasFailed = Atomic(false)
    /// The batch that is being written, until its outcome is reported.
    private var currentBatch: [ReadResult] = []
    /// The results that the store refused for a lasting reason, and answers that could not be sealed; they are retried
    /// after all others.
    private var resultsSetAside: [PendingResult] = []
    /// Answers with tokens that the store did not take.
    ///
    /// A result counts as lost until it is written to the spill file, because the process may end during the write.
    private(set) var unstored = UnstoredResults()
    private var lastDelivery: Task<Void, Never>?

    /// Creates a committer.
    ///
    /// `onFailure` is called with the number of waiting results when the store, sealing or the spill file fails.
    /// `deliver` is called once for each result when it is committed or given up, in batches and in order.
    init(
        store: any GrantStore,
        rules: RefreshRules,
        time: any TimeSource,
        random: any RandomSource,
        spill: (any ResultSpill)? = nil,
        onFailure: @escaping @Sendable (_ error: any Error, _ waiting: Int) -> Void,
        deliver: @escaping @Sendable ([FinishedRefresh]) async -> Void
    ) {
        self.store = store
        self.rules = rules
        self.time = time
        self.random = random
        self.spill = spill
        self.onFailure = onFailure
        self.deliver = deliver
    }

    func use(_ rules: RefreshRules) {
        self.rules = rules
    }

    /// Updates the number of refreshes in flight, from any thread.
    nonisolated func expect(inFlight count: Int) {
        inFlight.store(count, ordering: .relaxed)
    }

    /// The time for which results could not be stored; `nil` while they can.
    nonisolated var failingFor: Duration? {
        let now = time.sinceBoot
        return shared.withLock(\.failingSince).map { now - $0 }
    }

    /// Takes a result, from any thread.
    ///
    /// Unless a caller waits for it, it may wait a moment for the results of others.
    nonisolated func add(_ result: PendingResult) {
        guard shared.withLock({ $0.add(result) }) else { return }
        Task { await writeAll() }
    }

    /// `true` while results wait because the store fails: until it works again, no requests should be sent.
    nonisolated var isCommitFailing: Bool { hasFailed.load(ordering: .relaxed) }

    /// Stops trying: the stop deadline has passed and the store still fails, or the database was moved.
    ///
    /// Results that wait, and later ones, go to the spill file and are delivered as not stored. A commit in progress is
    /// not waited for: if it succeeds, the recovery of the spill file finds its results stored.
    func giveUp() async {
        shared.withLock { $0.hasGivenUp = true }
        let current = currentBatch
        currentBatch = []
        let waiting = takeWaiting() + resultsSetAside
        resultsSetAside = []
        await saveUnstored(current + readOrCountAsLost(waiting))
    }

    private func takeWaiting() -> [PendingResult] {
        shared.withLock { shared in
            defer { shared.waiting = [] }
            return shared.waiting
        }
    }

    /// Reads answers for the last time; those that still cannot be sealed are lost.
    private func readOrCountAsLost(_ results: [PendingResult]) -> [ReadResult] {
        results.compactMap { result in
            do {
                return ReadResult(refresh: result.refresh, report: try result.report())
            } catch {
                onFailure(error, 1)
                unstored.lost += 1
                deliverInOrder([FinishedRefresh(refresh: result.refresh, report: nil, committed: nil)])
                return nil
            }
        }
    }

    /// Writes answers with tokens to the spill file, and delivers all as not stored.
    private func saveUnstored(_ batch: [ReadResult]) async {
        await save(batch.map(\.report.result))
        deliverInOrder(batch.map { FinishedRefresh(refresh: $0.refresh, report: $0.report, committed: nil) })
    }

    /// Writes answers with tokens to the spill file.
    ///
    /// Google would give every other answer again to the next request.
    private func save(_ results: [RefreshResult]) async {
        let results = results.filter(\.answer.containsTokens)
        unstored.lost += results.count
        guard let spill, !results.isEmpty else { return }
        do {
            try await spill.save(results)
            unstored.lost -= results.count
            unstored.spilled += results.count
        } catch {
            onFailure(error, results.count)
        }
    }

    private func writeAll() async {
        while let batch = await nextBatch() { await write(batch) }
    }

    /// Returns the time that results wait for those in flight; `nil` if they are stored at once.
    ///
    /// It grows with the number in flight, because the results of one claim come together, and each commit costs as
    /// much as storing several results.
    static func gatheringTime(waiting: Int, inFlight: Int) -> Duration? {
        guard waiting < min(worthwhileBatch, inFlight) else { return nil }
        return min(.milliseconds(5 + inFlight / 20), longestGathering)
    }

    /// Returns the next results, read; `nil` if there are none, which ends the writing.
    private func nextBatch() async -> [ReadResult]? {
        let gatheringTime = shared.withLock { shared in
            shared.waiting.isEmpty || shared.isAwaited
                ? nil
                : Self.gatheringTime(
                    waiting: shared.waiting.count,
                    inFlight: inFlight.load(ordering: .relaxed)
                )
        }
        if let gatheringTime { await pause(gatheringTime) }
        let results = shared.withLock { shared in
            shared.isAwaited = false
            shared.isWriting = !shared.waiting.isEmpty
            let batch = Array(shared.waiting.prefix(Self.batchSize))
            shared.waiting.removeFirst(batch.count)
            return batch
        }
        return results.isEmpty ? nil : read(results)
    }

    /// Reads answers; one that cannot be sealed now is kept and tried again.
    private func read(_ results: [PendingResult]) -> [ReadResult] {
        guard !shared.withLock(\.hasGivenUp) else { return readOrCountAsLost(results) }
        var batch: [ReadResult] = []
        batch.reserveCapacity(results.count)
        for result in results {
            do {
                batch.append(ReadResult(refresh: result.refresh, report: try result.report()))
            } catch {
                onFailure(error, 1)
                setAside(result)
            }
        }
        return batch
    }

    private func write(_ batch: [ReadResult]) async {
        let unsent = batch.filter(\.report.result.answer.isNotSent)
        let sent = unsent.isEmpty ? batch : batch.filter { !$0.report.result.answer.isNotSent }
        if !unsent.isEmpty {
            deliverInOrder(unsent.map { FinishedRefresh(refresh: $0.refresh, report: $0.report, committed: nil) })
        }
        if !sent.isEmpty { await commit(sent) }
    }

    private func commit(_ batch: [ReadResult]) async {
        guard !shared.withLock(\.hasGivenUp) else { return await saveUnstored(batch) }
        currentBatch = batch
        await store(batch)
    }

    /// Stores the batch that is being written, unless ``giveUp()`` takes it before the commit ends.
    private func store(_ batch: [ReadResult]) async {
        var failures = 0
        while !shared.withLock(\.hasGivenUp) {
            do {
                let committed = try await commitPlain(batch)
                shared.withLock { $0.failingSince = nil }
                if hasFailed.load(ordering: .relaxed) { hasFailed.store(false, ordering: .relaxed) }
                guard endWriting(of: batch) else { return }
                // The database is a restored backup that lacks these grants, and a later one might have them.
                await save(committed.filter { $0.decision.grant == nil }.map(\.result))
                deliverInOrder(
                    zip(batch, committed).map { entry, result in
                        FinishedRefresh(refresh: entry.refresh, report: entry.report, committed: result)
                    }
                )
                return
            } catch {
                failures += 1
                if (error as? StoreError)?.mayPass == true {
                    let now = time.sinceBoot
                    shared.withLock { $0.failingSince = $0.failingSince ?? now }
                }
                onFailure(error, batch.count + shared.withLock(\.waiting.count))
                let code = (error as? StoreError)?.code
                if (error as? StoreError)?.endsUse ?? false { return await giveUp() }
                // One result that the store cannot take must not keep the others from being stored.
                if !((error as? StoreError)?.mayPass ?? false) {
                    if batch.count > 1 {
                        for entry in batch { await store([entry]) }
                    } else if endWriting(of: batch) {
                        for entry in batch { setAside(PendingResult(entry.refresh, with: entry.report)) }
                    }
                    return
                }
                hasFailed.store(true, ordering: .relaxed)
                readWaitingResults()
                if code == .diskFull, await spill?.freeReserve() ?? false { continue }
                await pause(backOff.delay(failures: failures, remainingLife: nil, unit: random.nextUnit()))
            }
        }
    }

    /// Ends the writing of a batch; returns `false` if ``giveUp()`` has taken it and reports its outcome.
    private func endWriting(of batch: [ReadResult]) -> Bool {
        guard !shared.withLock(\.hasGivenUp) else { return false }
        currentBatch.removeFirst(batch.count)
        return true
    }

    /// Reads the results that wait while the store fails: tokens wait in sealed form, and requests that were not sent
    /// do not wait.
    private func readWaitingResults() {
        var read: [PendingResult] = []
        var unsent: [FinishedRefresh] = []
        for entry in self.read(takeWaiting()) {
            if entry.report.result.answer.isNotSent {
                unsent.append(FinishedRefresh(refresh: entry.refresh, report: entry.report, committed: nil))
            } else {
                read.append(PendingResult(entry.refresh, with: entry.report))
            }
        }
        shared.withLock { $0.waiting.insert(contentsOf: read, at: 0) }
        if !unsent.isEmpty { deliverInOrder(unsent) }
    }

    /// Delivers a batch after those before it, while the next one is being stored.
    private func deliverInOrder(_ finished: [FinishedRefresh]) {
        let previous = lastDelivery
        lastDelivery = Task { [deliver] in
            await previous?.value
            await deliver(finished)
        }
    }

    /// Tries a result again after all others.
    private func setAside(_ result: PendingResult) {
        resultsSetAside.append(result)
        Task {
            await pause(backOff.longest)
            retryResultsSetAside()
        }
    }

    private func retryResultsSetAside() {
        guard !resultsSetAside.isEmpty else { return }
        defer { resultsSetAside = [] }
        for result in resultsSetAside { add(result) }
    }

    /// Stores a batch without the health of its clients if it may; grants that have changed since their claim follow
    /// with it.
    private func commitPlain(_ batch: [ReadResult]) async throws -> [CommittedResult] {
        let now = time.now
        guard
            store.storesPlainRefreshes,
            let entries = plainBatches.decide(
                batch.map { ($0.refresh, $0.report.result) },
                by: rules,
                at: now,
                time.sinceBoot
            )
        else { return try await commitTransaction(batch) }
        let stored = try await store.storePlain(entries.map(\.refresh), at: now)
        let changed = batch.filter { !stored.contains($0.refresh.grant.id) }
        guard !changed.isEmpty else { return entries.map(\.committed) }
        var others = try await commitTransaction(changed)[...]
        return entries.map { stored.contains($0.refresh.claimed.id) ? $0.committed : others.removeFirst() }
    }

    private func commitTransaction(_ batch: [ReadResult]) async throws -> [CommittedResult] {
        let rules = rules
        let now = time.now
        let units = batch.map { _ in random.nextUnit() }
        let clients = Set(batch.map(\.refresh.grant.clientID))
        let committed = try await store.storeResults { transaction in
            try transaction.willRead(grants: batch.map(\.refresh.grant.id), healthOf: Array(clients))
            var cache = ClientHealthCache(transaction: transaction, at: now)
            var committed: [CommittedResult] = []
            committed.reserveCapacity(batch.count)
            for (entry, unit) in zip(batch, units) {
                committed.append(try Self.apply(entry, at: now, unit: unit, by: rules, in: transaction, cache: &cache))
            }
            try cache.save()
            return committed
        }
        plainBatches.healthWasRead(of: clients, at: time.sinceBoot)
        return committed
    }

    private func pause(_ span: Duration) async {
        do {
            try await time.sleep(for: span)
        } catch {
            // A cancelled wait only makes the next try earlier.
        }
    }
}

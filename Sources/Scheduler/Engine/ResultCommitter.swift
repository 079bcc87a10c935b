import Base
import Crypto
import Storage
import Synchronization
import Telemetry

/// Commits results, many in one transaction, and keeps each that contains tokens until it is stored or in the spill
/// file.
///
/// While one transaction runs the next results gather, so the batch grows with the load. A batch that cannot be stored
/// is tried again until it is stored, or until the worker gives up at the end of its stop deadline. Its grants are not
/// sent again before. Answers with tokens that are still not stored then go to the spill file.
actor ResultCommitter {
    /// The results that wait, and the condition of the store.
    ///
    /// Any thread can add results.
    private struct SharedState {
        var waiting: [PendingResult] = []
        /// `true` if a caller waits for one of them.
        var isAwaited = false
        var isWriting = false
        /// The number of refreshes in flight, including those whose results wait here.
        var inFlight = 0
        /// The instant of the first failure since a result was last stored.
        var failingSince: BootInstant?
        var hasGivenUp = false
        /// The times that the store took for a batch.
        var durations = DurationBuckets()

        /// Adds a result, and returns `true` if the caller must start the writing.
        mutating func add(_ result: PendingResult) -> Bool {
            waiting.append(result)
            if result.refresh.isForced { isAwaited = true }
            defer { isWriting = true }
            return !isWriting
        }
    }

    /// A refresh and its result, on the way to the store.
    typealias ReadResult = (refresh: InFlightRefresh, result: RefreshResult)

    /// The number of results in one transaction: more than about a hundred rows only hold the writer longer.
    private static let batchSize = 100
    /// The size of a batch that is worth a commit.
    private static let worthwhileBatch = 50
    /// The longest time that a smaller batch waits for answers that are still in flight.
    private static let maximumGathering: Duration = .milliseconds(15)

    let store: any Store
    let time: any TimeSource
    let random: any RandomSource
    private(set) var rules: RefreshRules
    var plainBatches = PlainBatches()
    private let backOff = BackOff(first: .milliseconds(500), maximum: .seconds(5))
    private let spill: (any ResultSpill)?
    private let onFailure: @Sendable (_ error: any Error, _ waiting: Int) -> Void
    private let deliver: @Sendable (_ batch: [FinishedRefresh], _ storedIn: Duration?) async -> Void

    private nonisolated let shared = Mutex(SharedState())
    /// The rest of the batch that is being stored: the results whose outcome is not reported yet.
    private var currentBatch: [ReadResult] = []
    /// The results that the store refused for a lasting reason, and answers that could not be sealed.
    ///
    /// They are retried after all others.
    private var resultsSetAside: [PendingResult] = []
    /// Answers with tokens that the store did not take.
    ///
    /// A result counts as lost until it is written to the spill file, because the process might end during the write.
    private(set) var unstored = UnstoredResults()
    private var lastDelivery: Task<Void, Never>?

    /// Creates a committer.
    ///
    /// `onFailure` is called with the number of waiting results when the store, sealing or the spill file fails.
    /// `deliver` is called once for each result when it is committed or given up, in batches and in order, with the
    /// time that the store took if it is committed.
    init(
        store: any Store,
        rules: RefreshRules,
        time: any TimeSource,
        random: any RandomSource,
        spill: (any ResultSpill)? = nil,
        onFailure: @escaping @Sendable (_ error: any Error, _ waiting: Int) -> Void,
        deliver: @escaping @Sendable (_ batch: [FinishedRefresh], _ storedIn: Duration?) async -> Void
    ) {
        self.store = store
        self.rules = rules
        self.time = time
        self.random = random
        self.spill = spill
        self.onFailure = onFailure
        self.deliver = deliver
    }

    func use(_ rules: RefreshRules) { self.rules = rules }

    /// Updates the number of refreshes in flight, from any thread.
    nonisolated func expect(inFlight count: Int) { shared.withLock { $0.inFlight = count } }

    /// The time for which results could not be stored, or `nil` while they can.
    nonisolated var failingFor: Duration? {
        let now = time.sinceBoot
        return shared.withLock(\.failingSince).map { now - $0 }
    }

    nonisolated var durations: DurationBuckets { shared.withLock(\.durations) }

    /// Takes a result, from any thread.
    ///
    /// Unless a caller waits for it, it can wait a moment for the results of others.
    nonisolated func add(_ result: PendingResult) {
        guard shared.withLock({ $0.add(result) }) else { return }
        Task { await drain() }
    }

    /// Takes a result that needs no reading, from any thread.
    nonisolated func add(_ result: RefreshResult, of refresh: InFlightRefresh) { add(Self.pending((refresh, result))) }

    private static func pending(_ read: ReadResult) -> PendingResult {
        PendingResult(refresh: read.refresh) { () throws(CryptoError) in read.result }
    }

    /// `true` while answers wait that could not be sealed, set aside or for their next try.
    var hasUnsealedAnswers: Bool {
        resultsSetAside.contains(where: \.hasFailedToSeal)
            || shared.withLock { $0.waiting.contains(where: \.hasFailedToSeal) }
    }

    /// `true` while results wait because the store fails: until it works again, no requests should be sent.
    nonisolated var isCommitFailing: Bool { shared.withLock { $0.failingSince != nil } }

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
        await saveUnstored(current + read(waiting))
    }

    private var hasGivenUp: Bool { shared.withLock(\.hasGivenUp) }

    private func takeWaiting() -> [PendingResult] {
        shared.withLock { shared in
            defer { shared.waiting = [] }
            return shared.waiting
        }
    }

    // MARK: Storing

    /// Stores the results that wait, batch by batch, until there are none.
    private func drain() async {
        while let results = await nextResults() {
            let batch = read(results)
            guard !hasGivenUp else {
                await saveUnstored(batch)
                continue
            }
            currentBatch = batch
            var size = batch.count
            var failures = 0
            // ``giveUp()`` can empty the batch during a commit or a pause, and then reports its outcome.
            while !currentBatch.isEmpty {
                let part = Array(currentBatch.prefix(size))
                do {
                    let start = time.sinceBoot
                    let finished = try await commit(part)
                    failures = 0
                    let duration = time.sinceBoot - start
                    shared.withLock { state in
                        state.failingSince = nil
                        state.durations.record(duration)
                    }
                    guard !hasGivenUp else { break }
                    currentBatch.removeFirst(part.count)
                    // The database is a restored backup that lacks these grants, and a later one might have them.
                    await save(finished.filter { $0.decision?.grant == nil }.compactMap(\.result))
                    deliverInOrder(finished, storedIn: duration)
                } catch let error as StoreError where error.mayPass {
                    failures += 1
                    let now = time.sinceBoot
                    shared.withLock { $0.failingSince = $0.failingSince ?? now }
                    onFailure(error, currentBatch.count + shared.withLock(\.waiting.count))
                    readWaitingResults()
                    if error.code == .diskFull, await spill?.freeReserve() ?? false { continue }
                    await pause(backOff.delay(failures: failures, remainingLife: nil, jitter: random.nextUnit()))
                } catch {
                    failures = 0
                    onFailure(error, currentBatch.count + shared.withLock(\.waiting.count))
                    if (error as? StoreError)?.endsUse ?? false { await giveUp() }
                    guard !hasGivenUp else { break }
                    // One result that the store cannot take must not keep the others from being stored.
                    guard part.count == 1 else {
                        size = 1
                        continue
                    }
                    currentBatch.removeFirst()
                    setAside(Self.pending(part[0]))
                }
            }
        }
    }

    /// Returns the time that results wait for those in flight, or `nil` if they are stored at once.
    ///
    /// It grows with the number in flight, because the results of one claim come together, and each commit costs as
    /// much as storing several results.
    static func gatheringTime(waiting: Int, inFlight: Int) -> Duration? {
        guard waiting < min(worthwhileBatch, inFlight) else { return nil }
        return min(.milliseconds(5 + inFlight / 20), maximumGathering)
    }

    /// Returns the next results, or `nil` if there are none, which ends the storing.
    private func nextResults() async -> [PendingResult]? {
        let gatheringTime = shared.withLock { shared in
            shared.waiting.isEmpty || shared.isAwaited
                ? nil
                : Self.gatheringTime(waiting: shared.waiting.count, inFlight: shared.inFlight)
        }
        if let gatheringTime { await pause(gatheringTime) }
        return shared.withLock { shared in
            shared.isAwaited = false
            shared.isWriting = !shared.waiting.isEmpty
            guard shared.isWriting else { return nil }
            let batch = Array(shared.waiting.prefix(Self.batchSize))
            shared.waiting.removeFirst(batch.count)
            return batch
        }
    }

    /// Reads results, delivers those of requests that were not sent, and keeps those that cannot be sealed now.
    private func read(_ results: [PendingResult]) -> [ReadResult] {
        var batch: [ReadResult] = []
        batch.reserveCapacity(results.count)
        var ended: [FinishedRefresh] = []
        for pending in results {
            do {
                let result = try pending.read()
                if result.answer.isNotSent {
                    ended.append(FinishedRefresh(pending.refresh, result))
                } else {
                    batch.append((pending.refresh, result))
                }
            } catch {
                onFailure(error, 1)
                if hasGivenUp {
                    unstored.lost += 1
                    ended.append(FinishedRefresh(pending.refresh, nil))
                } else {
                    var unsealed = pending
                    unsealed.hasFailedToSeal = true
                    setAside(unsealed)
                }
            }
        }
        if !ended.isEmpty { deliverInOrder(ended) }
        return batch
    }

    /// Reads the results that wait while the store fails: tokens wait in sealed form, and requests that were not sent
    /// do not wait.
    private func readWaitingResults() {
        let results = read(takeWaiting()).map(Self.pending)
        shared.withLock { $0.waiting.insert(contentsOf: results, at: 0) }
    }

    /// Delivers a batch after those before it, while the next one is being stored.
    private func deliverInOrder(_ finished: [FinishedRefresh], storedIn duration: Duration? = nil) {
        let previous = lastDelivery
        lastDelivery = Task { [deliver] in
            await previous?.value
            await deliver(finished, duration)
        }
    }

    // MARK: Results that are not stored

    /// Writes answers with tokens to the spill file, and delivers all as not stored.
    private func saveUnstored(_ batch: [ReadResult]) async {
        await save(batch.map(\.result))
        deliverInOrder(batch.map { FinishedRefresh($0.refresh, $0.result) })
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

    /// Tries a result again after all others.
    private func setAside(_ result: PendingResult) {
        resultsSetAside.append(result)
        Task {
            await pause(backOff.maximum)
            retryResultsSetAside()
        }
    }

    func retryResultsSetAside() {
        guard !resultsSetAside.isEmpty else { return }
        defer { resultsSetAside = [] }
        for result in resultsSetAside { add(result) }
    }

    private func pause(_ span: Duration) async {
        do {
            try await time.sleep(for: span)
        } catch {
            // A cancelled wait only makes the next try earlier.
        }
    }
}

/// A result on its way to the committer.
struct PendingResult: Sendable {
    let refresh: InFlightRefresh
    var hasFailedToSeal = false
    /// Reads the response and seals its tokens.
    ///
    /// After a failure it can be tried again. A rotated token in a response that was not read has no other copy.
    let read: @Sendable () throws(CryptoError) -> RefreshResult
}

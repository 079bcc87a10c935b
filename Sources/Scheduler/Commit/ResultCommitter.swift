import Base
import Crypto
import Storage
import Synchronization
import Telemetry

/// Reads the responses of refreshes, decides about them and stores the decisions, many in one transaction.
///
/// While one transaction runs the next responses gather, so the batch grows with the load. A batch that cannot be stored
/// is tried again until it is stored, or until the worker gives up at the end of its stop deadline. Its grants are not
/// sent again before. Answers with tokens that are still not stored then go to the spill file.
///
///     refresh.didReceive(received)
///     committer.add(refresh)      // from any thread
///     // The committer reads the response, decides, stores the decision, and then calls `deliver`.
actor ResultCommitter {
    /// The refreshes that wait, and the condition of the store.
    ///
    /// Any thread can add refreshes.
    private struct SharedState {
        var waiting: [Refresh] = []
        /// `true` if a caller waits for one of them.
        var isAwaited = false
        var isWriting = false
        /// The number of refreshes in flight, including those that wait here.
        var inFlight = 0
        /// The instant of the first failure since a result was last stored.
        var failingSince: BootInstant?
        var hasGivenUp = false
        /// The times that the store took for a batch.
        var durations = DurationBuckets()

        /// Adds a refresh, and returns `true` if the caller must start the writing.
        mutating func add(_ refresh: Refresh) -> Bool {
            waiting.append(refresh)
            if refresh.isForced { isAwaited = true }
            defer { isWriting = true }
            return !isWriting
        }
    }

    /// Reads a response and seals its tokens. After a failure it can be tried again.
    typealias Read = @Sendable (ReceivedResponse, RefreshClaim) throws(CryptoError) -> RefreshResult

    /// The number of results in one transaction: more than about a hundred rows only hold the writer longer.
    static let batchSize = 100
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
    private let readResponse: Read
    private let onFailure: @Sendable (_ error: any Error, _ waiting: Int) -> Void
    private let deliver: @Sendable (_ batch: [Refresh], _ storedIn: Duration?) async -> Void

    private nonisolated let shared = Mutex(SharedState())
    /// The rest of the batch that is being stored: the refreshes whose outcome is not reported yet.
    private var currentBatch: [Refresh] = []
    /// The refreshes whose results the store refused for a lasting reason, or whose answers could not be sealed.
    ///
    /// They are retried after all others.
    private var setAside: [Refresh] = []
    /// The grants whose answers could not be sealed so far.
    private var unsealed: Set<GrantID> = []
    /// Answers with tokens that the store did not take.
    ///
    /// A result counts as lost until it is written to the spill file, because the process might end during the write.
    private(set) var unstored = UnstoredResults()
    private var lastDelivery: Task<Void, Never>?

    /// Creates a committer.
    ///
    /// `onFailure` is called with the number of waiting results when the store, sealing or the spill file fails.
    /// `deliver` is called once for each refresh when its decision is committed or it has ended without one, in batches
    /// and in order, with the time that the store took if it is committed.
    init(
        store: any Store,
        rules: RefreshRules,
        time: any TimeSource,
        random: any RandomSource,
        spill: (any ResultSpill)? = nil,
        read: @escaping Read,
        onFailure: @escaping @Sendable (_ error: any Error, _ waiting: Int) -> Void,
        deliver: @escaping @Sendable (_ batch: [Refresh], _ storedIn: Duration?) async -> Void
    ) {
        self.store = store
        self.rules = rules
        self.time = time
        self.random = random
        self.spill = spill
        readResponse = read
        self.onFailure = onFailure
        self.deliver = deliver
    }

    func use(_ rules: RefreshRules) { self.rules = rules }

    /// Updates the number of refreshes in flight, from any thread.
    nonisolated func expect(inFlight count: Int) { shared.withLock { $0.inFlight = count } }

    /// The time for which results could not be stored, or `nil` while they can.
    nonisolated var failingFor: Duration? {
        guard let failingSince = shared.withLock(\.failingSince) else { return nil }
        return time.sinceBoot - failingSince
    }

    nonisolated var durations: DurationBuckets { shared.withLock(\.durations) }

    /// Takes a refresh that is answered or read, from any thread.
    ///
    /// Unless a caller waits for it, it can wait a moment for others.
    nonisolated func add(_ refresh: Refresh) {
        guard shared.withLock({ $0.add(refresh) }) else { return }
        Task { await drain() }
    }

    /// Takes a refresh whose result needs no reading, from any thread.
    nonisolated func add(_ refresh: Refresh, with result: RefreshResult) {
        refresh.didRead(result)
        add(refresh)
    }

    /// `true` while answers wait that could not be sealed, set aside or for their next try.
    var hasUnsealedAnswers: Bool { !unsealed.isEmpty }

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
        let waiting = takeWaiting() + setAside
        setAside = []
        await endUnstored(current + read(waiting))
    }

    private var hasGivenUp: Bool { shared.withLock(\.hasGivenUp) }

    private func takeWaiting() -> [Refresh] {
        shared.withLock { shared in
            defer { shared.waiting = [] }
            return shared.waiting
        }
    }

    // MARK: From response to stored decision

    /// Reads and stores the refreshes that wait, batch by batch, until there are none.
    private func drain() async {
        while let refreshes = await nextRefreshes() {
            let batch = read(refreshes)
            if hasGivenUp {
                await endUnstored(batch)
            } else {
                await store(batch)
            }
        }
    }

    /// Returns the next refreshes, or `nil` if there are none, which ends the storing.
    private func nextRefreshes() async -> [Refresh]? {
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

    /// Returns the time that results wait for those in flight, or `nil` if they are stored at once.
    ///
    /// It grows with the number in flight, because the results of one claim come together, and each commit costs as
    /// much as storing several results.
    static func gatheringTime(waiting: Int, inFlight: Int) -> Duration? {
        guard waiting < min(worthwhileBatch, inFlight) else { return nil }
        return min(.milliseconds(5 + inFlight / 20), maximumGathering)
    }

    /// Reads responses and seals their tokens, and returns the refreshes that are to be stored.
    ///
    /// Those that were not sent are delivered at once. Those whose tokens cannot be sealed are set aside: a rotated
    /// token in them has no other copy.
    private func read(_ refreshes: [Refresh]) -> [Refresh] {
        var batch: [Refresh] = []
        batch.reserveCapacity(refreshes.count)
        var ended: [Refresh] = []
        for refresh in refreshes {
            do throws(CryptoError) {
                let result = try readResult(of: refresh)
                if result.answer.isNotSent {
                    refresh.didEnd()
                    ended.append(refresh)
                } else {
                    batch.append(refresh)
                }
            } catch {
                onFailure(error, 1)
                if hasGivenUp {
                    unsealed.remove(refresh.grant.id)
                    unstored.lost += 1
                    refresh.didEnd()
                    ended.append(refresh)
                } else {
                    unsealed.insert(refresh.grant.id)
                    retryLater(refresh)
                }
            }
        }
        if !ended.isEmpty { deliverInOrder(ended) }
        return batch
    }

    private func readResult(of refresh: Refresh) throws(CryptoError) -> RefreshResult {
        guard case .answered(let received) = refresh.phase else { return refresh.result }
        let result = try readResponse(received, refresh.claim)
        refresh.didRead(result)
        if !unsealed.isEmpty { unsealed.remove(refresh.grant.id) }
        return result
    }

    /// Stores the results of a batch, however long the store fails.
    private func store(_ batch: [Refresh]) async {
        currentBatch = batch
        var size = batch.count
        var failures = 0
        // ``giveUp()`` can empty the batch during a commit or a pause, and then reports its outcome.
        while !currentBatch.isEmpty {
            let part = Array(currentBatch.prefix(size))
            do {
                let start = time.sinceBoot
                let decisions = try await commit(part)
                failures = 0
                await committed(part, with: decisions, in: time.sinceBoot - start)
            } catch let error as StoreError where error.mayPass {
                failures += 1
                await waitForStore(after: error, failures: failures)
            } catch {
                failures = 0
                reportFailure(error)
                if (error as? StoreError)?.endsUse ?? false { await giveUp() }
                guard !hasGivenUp else { return }
                // One result that the store cannot take must not keep the others from being stored.
                if part.count > 1 { size = 1 } else { retryLater(currentBatch.removeFirst()) }
            }
        }
    }

    /// Delivers refreshes whose decisions are committed.
    private func committed(_ part: [Refresh], with decisions: [StoredDecision], in duration: Duration) async {
        shared.withLock { state in
            state.failingSince = nil
            state.durations.record(duration)
        }
        guard !hasGivenUp else { return }
        currentBatch.removeFirst(part.count)
        for (refresh, decision) in zip(part, decisions) { refresh.didStore(decision) }
        // The database is a restored backup that lacks these grants, and a later one might have them.
        await save(part.filter { $0.storedDecision?.decision.grant == nil })
        deliverInOrder(part, storedIn: duration)
    }

    /// Waits for the next try to store.
    private func waitForStore(after error: StoreError, failures: Int) async {
        let now = time.sinceBoot
        shared.withLock { $0.failingSince = $0.failingSince ?? now }
        reportFailure(error)
        readWaiting()
        if error.code == .diskFull, await spill?.freeReserve() ?? false { return }
        await pause(backOff.delay(failures: failures, remainingLife: nil, jitter: random.nextUnit()))
    }

    /// Reads the responses that wait while the store fails: tokens wait in sealed form, and requests that were not sent
    /// do not wait.
    private func readWaiting() {
        let refreshes = read(takeWaiting())
        shared.withLock { $0.waiting.insert(contentsOf: refreshes, at: 0) }
    }

    private func reportFailure(_ error: any Error) {
        onFailure(error, currentBatch.count + shared.withLock(\.waiting.count))
    }

    /// Delivers a batch after those before it, while the next one is being stored.
    private func deliverInOrder(_ refreshes: [Refresh], storedIn duration: Duration? = nil) {
        let previous = lastDelivery
        lastDelivery = Task { [deliver] in
            await previous?.value
            await deliver(refreshes, duration)
        }
    }

    // MARK: Results that are not stored

    /// Writes answers with tokens to the spill file, and delivers all as not stored.
    private func endUnstored(_ batch: [Refresh]) async {
        await save(batch)
        for refresh in batch { refresh.didEnd() }
        deliverInOrder(batch)
    }

    /// Writes answers with tokens to the spill file.
    ///
    /// Google would give every other answer again to the next request.
    private func save(_ refreshes: [Refresh]) async {
        let results = refreshes.map(\.result).filter(\.answer.containsTokens)
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

    /// Tries a refresh again after all others.
    private func retryLater(_ refresh: Refresh) {
        setAside.append(refresh)
        Task {
            await pause(backOff.maximum)
            retrySetAside()
        }
    }

    func retrySetAside() {
        guard !setAside.isEmpty else { return }
        defer { setAside = [] }
        for refresh in setAside { add(refresh) }
    }

    private func pause(_ span: Duration) async {
        do {
            try await time.sleep(for: span)
        } catch {
            // A cancelled wait only makes the next try earlier.
        }
    }
}

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
    /// Reads a response and seals its tokens. After a failure it can be tried again.
    typealias Read = @Sendable (ReceivedResponse, RefreshClaim) throws(CryptoError) -> RefreshResult

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

    private nonisolated let queue = Mutex(CommitQueue())
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
    nonisolated func expect(inFlight count: Int) { queue.withLock { $0.inFlight = count } }

    /// The time for which results could not be stored, or `nil` while they can.
    nonisolated var failingFor: Duration? {
        guard let failingSince = queue.withLock(\.failingSince) else { return nil }
        return time.sinceBoot - failingSince
    }

    nonisolated var durations: DurationBuckets { queue.withLock(\.durations) }

    /// Takes a refresh that is answered or read, from any thread.
    ///
    /// Unless a caller waits for it, it can wait a moment for others.
    nonisolated func add(_ refresh: Refresh) {
        guard queue.withLock({ $0.add(refresh) }) else { return }
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
    nonisolated var isCommitFailing: Bool { queue.withLock { $0.failingSince != nil } }

    /// Stops trying: the stop deadline has passed and the store still fails, or the database was moved.
    ///
    /// Results that wait, and later ones, go to the spill file and are delivered as not stored. A commit in progress is
    /// not waited for: if it succeeds, the recovery of the spill file finds its results stored.
    func giveUp() async {
        queue.withLock { $0.hasGivenUp = true }
        let current = currentBatch
        currentBatch = []
        let waiting = takeWaiting() + setAside
        setAside = []
        await endUnstored(current + read(waiting))
    }

    private var hasGivenUp: Bool { queue.withLock(\.hasGivenUp) }

    private func takeWaiting() -> [Refresh] { queue.withLock { $0.takeAll() } }

    // MARK: From response to stored decision

    /// Reads and stores the refreshes that wait, batch by batch, until there are none.
    private func drain() async {
        while let refreshes = await nextRefreshes() {
            let batch = read(refreshes)
            if hasGivenUp {
                await endUnstored(batch)
            } else {
                await commitUntilStored(batch)
            }
        }
    }

    /// Returns the next refreshes, or `nil` if there are none, which ends the storing.
    private func nextRefreshes() async -> [Refresh]? {
        if let gatheringTime = queue.withLock(\.gatheringTime) { await pause(gatheringTime) }
        return queue.withLock { $0.takeBatch() }
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
            switch readOrSetAside(refresh) {
            case .toStore: batch.append(refresh)
            case .setAside: break
            case .ended:
                refresh.didEnd()
                ended.append(refresh)
            }
        }
        if !ended.isEmpty { deliverInOrder(ended) }
        return batch
    }

    private enum AfterReading {
        case toStore
        /// It is read again later.
        case setAside
        case ended
    }

    private func readOrSetAside(_ refresh: Refresh) -> AfterReading {
        do throws(CryptoError) {
            let result = try readResult(of: refresh)
            return result.isNotSent ? .ended : .toStore
        } catch {
            onFailure(error, 1)
            if hasGivenUp {
                unsealed.remove(refresh.grant.id)
                unstored.lost += 1
                return .ended
            }
            unsealed.insert(refresh.grant.id)
            retryLater(refresh)
            return .setAside
        }
    }

    private func readResult(of refresh: Refresh) throws(CryptoError) -> RefreshResult {
        guard let received = refresh.unreadResponse else { return refresh.result }
        let result = try readResponse(received, refresh.claim)
        refresh.didRead(result)
        if !unsealed.isEmpty { unsealed.remove(refresh.grant.id) }
        return result
    }

    /// Commits the results of a batch, however long the store fails.
    private func commitUntilStored(_ batch: [Refresh]) async {
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
        queue.withLock { state in
            state.failingSince = nil
            state.durations.record(duration)
        }
        guard !hasGivenUp else { return }
        currentBatch.removeFirst(part.count)
        var ofGoneGrants: [Refresh] = []
        for (refresh, decision) in zip(part, decisions) {
            refresh.didStore(decision)
            if decision.isGrantGone { ofGoneGrants.append(refresh) }
        }
        // The database is a restored backup that lacks these grants, and a later one might have them.
        await save(ofGoneGrants)
        deliverInOrder(part, storedIn: duration)
    }

    /// Waits for the next try to store.
    private func waitForStore(after error: StoreError, failures: Int) async {
        let now = time.sinceBoot
        queue.withLock { $0.failingSince = $0.failingSince ?? now }
        reportFailure(error)
        readWaiting()
        if error.code == .diskFull, await spill?.freeReserve() ?? false { return }
        await pause(backOff.delay(failures: failures, remainingLife: nil, jitter: random.nextUnit()))
    }

    /// Reads the responses that wait while the store fails: tokens wait in sealed form, and requests that were not sent
    /// do not wait.
    private func readWaiting() {
        let refreshes = read(takeWaiting())
        queue.withLock { $0.putBack(refreshes) }
    }

    private func reportFailure(_ error: any Error) {
        onFailure(error, currentBatch.count + queue.withLock(\.waiting.count))
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

package import Clocks
package import GoogleOAuth
import Scheduler
package import Secrets
package import Store

/// Keeps grants fresh: scans the due index, claims due grants, calls Google, and stores what the rules decide.
///
/// All lasting state is in the store, so the engine can die at any instant. Its own state is a window of the due index
/// (the heap), the grants that wait for their client's pace, and the flights.
package actor RefreshEngine {
    let store: any GrantStore
    let time: any TimeSource
    let random: any RandomSource
    let dispatcher: RefreshDispatcher
    let log: EngineLog
    var configuration: EngineConfiguration

    /// The coming window of the due index.
    var heap = DeadlineHeap()
    /// The client of each grant in the heap.
    var clients: [GrantID: String] = [:]
    var gates: [String: ClientGate] = [:]
    /// Grants that wait in a gate's queue.
    var queued: Set<GrantID> = []
    /// The grants that are being claimed or are in flight, with the callers that wait for each.
    var flights: [GrantID: FlightSlot] = [:]
    var nextScan: BootInstant
    /// The number of rounds over the clients, which decides which client is served first.
    var turns: UInt64 = 0
    var isStopping = false
    /// Wakes the loop for another turn.
    var wake: @Sendable () -> Void = {}
    /// Reports that the loop is alive, after each call of the store that it waited for.
    var beat: @Sendable () -> Void = {}
    /// The number of claims that failed in a row, and the instant of the next try.
    var claimFailures = 0
    var claimsResume: BootInstant
    var drained: [CheckedContinuation<Void, Never>] = []
    var clockWitness: ClockReading?
    /// The last reading before a step of the clock whose effects are not repaired in the store yet.
    var readingBeforeStep: ClockReading?
    /// The clock that all workers share for breakers and paces: its epoch, and how far it is ahead of this machine's
    /// boot clock.
    var sharedClock: (epoch: String, ahead: Duration) = ("", .zero)
    var inFlightLimit: InFlightLimit
    /// This worker's share of the grants.
    var share = WorkPartition.whole
    private let spill: (any ResultSpill)?
    /// The errors after which the store must not be used any more, because the database was moved or replaced.
    package nonisolated let useEnds: AsyncStream<StoreError>
    private nonisolated let useEnd: AsyncStream<StoreError>.Continuation
    /// The last task that makes the grants due which an outage left in back-off.
    var hastening: Task<Void, Never>?

    /// Commits the results of the flights.
    lazy var committer = ResultCommitter(
        store: store,
        rules: RefreshRules(maxRate: configuration.maxRate),
        time: time,
        random: random,
        spill: spill,
        onTrouble: { [weak self] error, waiting in self?.note(error, waiting: waiting) },
        deliver: { [weak self] landed in await self?.land(landed) }
    )

    private static let claimBackOff = BackOff(first: .seconds(1), longest: .seconds(5))

    /// A place among the flights: claimed, or about to be.
    struct FlightSlot {
        let landing = CompletionSignal()
        var flight: InFlightRefresh?
        /// Cancels the request.
        var cancel: (@Sendable () -> Void)?
    }

    package init(
        store: any GrantStore,
        endpoint: any TokenEndpoint,
        vault: TokenVault,
        configuration: EngineConfiguration,
        time: any TimeSource,
        random: any RandomSource,
        log: EngineLog,
        spill: (any ResultSpill)? = nil
    ) {
        self.store = store
        self.time = time
        self.random = random
        self.log = log
        self.configuration = configuration
        self.spill = spill
        (useEnds, useEnd) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(1))
        nextScan = time.sinceBoot
        claimsResume = time.sinceBoot
        inFlightLimit = InFlightLimit(ceiling: configuration.mostInFlight)
        dispatcher = RefreshDispatcher(
            endpoint: endpoint,
            vault: vault,
            time: time,
            leaseNeededToSend: configuration.leaseNeededToSend,
            clientSecrets: ClientSecrets(configuration.clientSecrets)
        )
    }

    /// The keys, and their sufficiency to refresh.
    package nonisolated var keyRing: ReloadableKeyRing { dispatcher.vault.ring }

    package var inFlight: Int { flights.count }
    /// The number of grants in the heap, which are not due yet.
    package var waiting: Int { heap.count }

    /// The time for which results could not be stored; `nil` while they can.
    package var storingFailsFor: Duration? { committer.failsFor }

    /// Sets another pace, as after a reload of the configuration.
    package func change(maxRate: Double) async {
        configuration.maxRate = maxRate
        sharePace()
        await committer.use(RefreshRules(maxRate: maxRate))
    }

    /// Sets the secrets that the next requests are sent with, as after a reload of the configuration.
    package nonisolated func change(clientSecrets: [String: Secret]) {
        dispatcher.clientSecrets.replace(with: clientSecrets)
    }

    /// The current instant of the clock that all workers share.
    var sharedNow: BootInstant { time.sinceBoot + sharedClock.ahead }

    func readSharedClock() async throws {
        let reading = try await store.leaseTime()
        sharedClock = (reading.epoch, reading.instant - time.sinceBoot)
    }

    /// Reads the due index at once, because another part of this process has changed due times.
    package func storeChanged() {
        nextScan = time.sinceBoot
        wake()
    }

    /// Reports an error of the store, or of the spill file.
    package nonisolated func note(_ error: any Error, waiting: Int) {
        log.storeTrouble(error, waiting: waiting)
        if let error = error as? StoreError, error.endsUse { useEnd.yield(error) }
    }

    /// `true` if the last write to the store failed.
    package var isStoreFailing: Bool { claimFailures > 0 || committer.isStoreFailing }

    // MARK: Flights

    /// The outcome of a claim.
    struct ClaimOutcome {
        /// The number of grants that were not sent: another worker has them, or the store failed.
        var lost = 0
        /// `true` if the store failed in a way that concerns every grant.
        var hasFailed = false
    }

    /// Claims grants and sends those that were claimed; returns the flights to await, and the outcome of the claim.
    ///
    /// A grant that is in flight already is joined: it never has a second flight.
    @discardableResult
    func launch(_ ids: [GrantID], dueBy: Timestamp?) async -> (landings: [CompletionSignal], claim: ClaimOutcome) {
        let free = ids.filter { flights[$0] == nil }
        for id in free { flights[id] = FlightSlot() }
        let landings = ids.compactMap { flights[$0]?.landing }
        let claim = await claimAndSend(free, dueBy: dueBy)
        beat()
        return (landings, claim)
    }

    /// Claims grants and sends those that were claimed.
    ///
    /// `seen` is a grant as the caller had read it: a change by another worker since then counts as done.
    @discardableResult
    func claimAndSend(_ ids: [GrantID], dueBy: Timestamp?, seen: Grant? = nil) async -> ClaimOutcome {
        guard keyRing.isComplete else {
            for id in ids { land(id, as: .abandoned) }
            return ClaimOutcome()
        }
        let span = configuration.leaseSpan
        let standsUntil = time.sinceBoot + span
        do {
            let claimed = try await store.claim(ids, dueBy: dueBy, owner: configuration.workerName, for: span)
            claimFailures = 0
            // The store may have delayed this claim until after the stop: an answer might then never be stored.
            if isStopping {
                await giveBack(claimed, of: ids)
                return ClaimOutcome()
            }
            // With several workers, a grant may end between the selection of due grants and their lease.
            let ended = claimed.filter { $0.state.endsCalls && $0.revocationAskedAt == nil }
            if !ended.isEmpty { await giveBack(ended, of: ended.map(\.id)) }
            var departing: [InFlightRefresh] = []
            for grant in claimed where !ended.contains(where: { $0.id == grant.id }) {
                guard let claim = grant.lease?.claim else { continue }
                if let seen, seen.wasTried(before: grant) {
                    await giveBack([grant], of: [grant.id], as: .elsewhere)
                    continue
                }
                let flight = InFlightRefresh(
                    grant: grant,
                    claim: claim,
                    isForced: dueBy == nil,
                    leaseStandsUntil: standsUntil
                )
                flights[grant.id]?.flight = flight
                departing.append(flight)
            }
            if isStopping {
                // The return of the other leases took until after the stop.
                await giveBack(departing.map(\.grant), of: departing.map(\.grant.id))
            } else {
                depart(departing)
            }
            let lost = Set(ids).subtracting(claimed.map(\.id))
            for id in lost { land(id, as: .elsewhere) }
            committer.expect(aloft: flights.count)
            return ClaimOutcome(lost: lost.count)
        } catch {
            let concernsOneRow = (error as? StoreError)?.mayConcernOneRow ?? false
            // One row that the store cannot read must not keep the others of its batch from being refreshed.
            if ids.count > 1, concernsOneRow { return await claimOneByOne(ids, dueBy: dueBy) }
            note(error, waiting: ids.count)
            for id in ids { land(id, as: .abandoned) }
            if !concernsOneRow { pauseClaims() }
            return ClaimOutcome(lost: ids.count, hasFailed: !concernsOneRow)
        }
    }

    private func claimOneByOne(_ ids: [GrantID], dueBy: Timestamp?) async -> ClaimOutcome {
        var outcome = ClaimOutcome()
        for (place, id) in ids.enumerated() {
            guard !isStopping, !outcome.hasFailed else {
                for id in ids[place...] { land(id, as: .abandoned) }
                outcome.lost += ids.count - place
                break
            }
            let claim = await claimAndSend([id], dueBy: dueBy)
            outcome.lost += claim.lost
            outcome.hasFailed = claim.hasFailed
            beat()
        }
        return outcome
    }

    /// Pauses claims for a moment after the store failed: a call may wait for seconds before it fails.
    private func pauseClaims() {
        claimFailures += 1
        claimsResume =
            time.sinceBoot
            + Self.claimBackOff.delay(
                failures: claimFailures,
                remainingLife: nil,
                unit: random.nextUnit()
            )
    }

    /// Sends the requests of flights.
    private func depart(_ departing: [InFlightRefresh]) {
        let committer = committer
        let revoking = departing.filter { $0.grant.revocationAskedAt != nil }
        for flight in revoking {
            let task = Task {
                let report = await revoke(flight)
                committer.take(PendingResult(flight, with: report))
            }
            flights[flight.grant.id]?.cancel = { task.cancel() }
        }
        let asking = revoking.isEmpty ? departing : departing.filter { $0.grant.revocationAskedAt == nil }
        for (id, cancel) in dispatcher.depart(asking, arrive: { committer.take($0) }) { flights[id]?.cancel = cancel }
    }

    /// Revokes at Google, unless the revocation would also end a grant that was brought after the disconnect.
    private func revoke(_ flight: InFlightRefresh) async -> RefreshDispatcher.Report {
        let failure: LookupFailure?
        do {
            let grant = flight.grant
            guard try await store.transact({ try GrantEnding.isShared(grant, in: $0) }) else {
                return await dispatcher.revoke(flight)
            }
            failure = nil
        } catch {
            note(error, waiting: 1)
            failure = .unavailable(code: "store")
        }
        return RefreshDispatcher.Report(
            finding: RefreshResult(attempt: flight.attempt, answer: .revocation(failure: failure))
        )
    }

    /// Handles flights whose results are committed, and ends them.
    private func land(_ batch: [FinishedRefresh]) {
        let instant = time.sinceBoot
        let now = time.now
        var kept: [GrantID: Int64] = [:]
        var learntOf: String?
        for landed in batch {
            let flight = landed.flight
            let client = flight.grant.clientID
            assert(isStopping || flights[flight.grant.id]?.flight === flight, "a flight was delivered twice")
            if let report = landed.report, case .granted = report.finding.answer, let latency = report.latency {
                inFlightLimit.learn(latency, at: instant)
            }
            if let settled = landed.settled, let report = landed.report {
                log.settled(settled, flight: flight, report: report, at: now)
                // Each result holds its client's health after the whole batch.
                if client != learntOf { gate(of: client) { $0.learn(settled.health) } }
                learntOf = client
                logPaceAndBreaker(settled, client: client)
                if let grant = settled.grant, share.owns(grant.id) { expect(grant) }
                if !settled.recalled.isEmpty { nextScan = instant }
                if settled.ruling.endsOutage { hastenRetries(of: client) }
                land(flight.grant.id, as: .settled(settled))
            } else if landed.isNotSent {
                kept[flight.grant.id] = flight.claim
            } else {
                land(flight.grant.id, as: .abandoned)
            }
        }
        committer.expect(aloft: flights.count)
        // The results after these must not wait for it.
        if !kept.isEmpty { Task { [kept] in await giveBack(kept) } }
    }

    /// Releases leases unused: the grants are due for any worker.
    private func giveBack(_ claims: [GrantID: Int64], as end: RefreshCompletion = .abandoned) async {
        // On failure the leases expire by themselves.
        if !claims.isEmpty, !(isStopping && isStoreFailing) {
            do {
                try await store.release(claims)
            } catch {
                note(error, waiting: claims.count)
            }
        }
        for id in claims.keys { land(id, as: end) }
    }

    /// Releases the claims of `ids` before a request was sent.
    private func giveBack(_ claimed: [Grant], of ids: [GrantID], as end: RefreshCompletion = .abandoned) async {
        let claims = claimed.compactMap { grant in grant.lease.map { (grant.id, $0.claim) } }
        await giveBack(Dictionary(claims) { first, _ in first }, as: end)
        for id in ids { land(id, as: end) }
    }

    /// Ends a flight: wakes the callers that waited for it and frees its place.
    func land(_ id: GrantID, as end: RefreshCompletion) {
        guard let slot = flights.removeValue(forKey: id) else { return }
        slot.landing.complete(end)
        if flights.isEmpty {
            for waiter in drained { waiter.resume() }
            drained = []
        }
        wake()
    }

    /// Puts a grant's next due time into the heap if it is within the window.
    func expect(_ grant: Grant) {
        guard let dueAt = grant.dueAt, dueAt <= time.now + configuration.scanAhead else { return }
        clients[grant.id] = grant.clientID
        heap.set(grant.id.rawValue, deadline: dueAt)
    }

    /// Changes a client's gate in place: a copy of it would copy its whole queue.
    func gate(of client: String, _ change: (inout ClientGate) -> Void) {
        change(&gates[client, default: newGate()])
    }

    private func newGate() -> ClientGate {
        ClientGate(
            maxRate: configuration.maxRate,
            sharers: share.count,
            health: ClientHealth(epoch: sharedClock.epoch)
        )
    }

    private func logPaceAndBreaker(_ settled: CommittedResult, client: String) {
        if let change = settled.ruling.breakerChange { log.breaker(change, client: client) }
        guard settled.ruling.limitsChanged, let gate = gates[client] else { return }
        let instant = sharedNow
        log.pacer(
            client: client,
            ceiling: gate.pacer.ceiling(at: instant),
            paused: max(.zero, (gate.pacer.limits.pausedUntil ?? instant) - instant),
            reason: settled.finding.code
        )
    }
}

extension Grant {
    /// `true` if the grant was tried, or got another token, between this reading and a later one.
    fileprivate func wasTried(before later: Grant) -> Bool {
        lastAttemptAt != later.lastAttemptAt || accessToken != later.accessToken
    }
}

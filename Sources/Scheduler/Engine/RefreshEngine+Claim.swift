import Base
import Storage

/// A claim on its way to the store.
///
/// Each of its grants has a slot.
struct ClaimRequest: Sendable {
    var ids: [GrantID]
    /// The time by which the grants must be due, or `nil` for a caller's refresh before that.
    var dueBy: Timestamp?
    /// The grant as a caller had read it: a change by another worker since then counts as done.
    var seen: Grant?
}

/// The claim: grants are leased in the store before they are sent.
extension RefreshEngine {
    /// Claims the grants of a request and sends those that were claimed.
    ///
    /// Returns the number of those that were not sent: another worker has them, they are deferred revocations, or the
    /// store failed. `hasFailed` is `true` if the failure concerns every grant.
    func claim(_ request: ClaimRequest) async -> (unsent: Int, hasFailed: Bool) {
        guard !request.ids.isEmpty else { return (0, false) }
        guard state.mayClaim(under: conditions) else { return (abandon(request), false) }
        let leasesEnd = time.sinceBoot + Lease.span
        do {
            let grants = try await store.claim(
                request.ids,
                dueBy: request.dueBy,
                owner: configuration.workerName,
                for: Lease.span,
                takesOver: state.takeoverPause.isOver(at: time.sinceBoot)
            )
            state.takeoverPause.written(at: time.sinceBoot)
            let (unsent, actions) = state.claimed(grants, for: request, leasesEnd: leasesEnd)
            execute(actions)
            reportProgress()
            return (unsent, false)
        } catch {
            let concernsOneRow = (error as? StoreError)?.mayConcernOneRow ?? false
            let each = state.claimFailed(request, concernsOneRow, at: time.sinceBoot, jitter: random.nextUnit())
            reportProgress()
            if each.isEmpty {
                reportStoreFailure(error, waiting: request.ids.count)
                return (abandon(request), !concernsOneRow)
            }
            // One row that the store cannot read must not keep the others of its batch from being refreshed.
            var (unsent, hasFailed) = (0, false)
            for request in each {
                let one = hasFailed ? (abandon(request), true) : await claim(request)
                unsent += one.0
                hasFailed = one.1
            }
            return (unsent, hasFailed)
        }
    }

    private func abandon(_ request: ClaimRequest) -> Int {
        execute(state.ended(request.ids, as: .abandoned))
        return request.ids.count
    }
}

/// Claims: grants get a slot before the store is asked for their leases, and are sent if it returns them.
extension RefreshEngineState {
    /// Gives grants a slot, and returns their claim, and the completion of each.
    ///
    /// A grant that has a slot already is joined: it never has a second refresh in flight.
    mutating func reserve(
        _ ids: [GrantID],
        dueBy: Timestamp?,
        seen: Grant? = nil
    ) -> (claim: ClaimRequest, completions: [CompletionSignal]) {
        var free: [GrantID] = []
        var completions: [CompletionSignal] = []
        free.reserveCapacity(ids.count)
        completions.reserveCapacity(ids.count)
        for id in ids {
            let existing = slots[id]
            let slot = existing ?? InFlightSlot()
            completions.append(slot.completion)
            guard existing == nil else { continue }
            slots[id] = slot
            free.append(id)
        }
        return (ClaimRequest(ids: free, dueBy: dueBy, seen: seen), completions)
    }

    /// `true` if the store can be asked for leases.
    func mayClaim(under conditions: Conditions) -> Bool { !isStopping && conditions.isKeyRingComplete }

    /// The store has leased grants, all or some of those that were asked for.
    ///
    /// Leases are released if the stop has begun since the claim was sent: an answer might then never be stored.
    mutating func claimed(
        _ grants: [Grant],
        for claim: ClaimRequest,
        leasesEnd: BootInstant
    ) -> (unsent: Int, actions: [EngineAction]) {
        claimBackOff.succeed()
        var sent: [InFlightRefresh] = []
        var abandoned: [GrantID: Int64] = [:]
        var done: [GrantID: Int64] = [:]
        var deferred: [GrantID: Int64] = [:]
        var freeRevocations = grants.contains { $0.revocationAskedAt != nil } ? freeRevocationSlots : 0
        var lost = Set(claim.ids)
        for grant in grants {
            guard let number = grant.lease?.claim else { continue }
            lost.remove(grant.id)
            // With several workers, a grant might end between the selection of due grants and their lease.
            if isStopping || grant.state.endsRefreshes && grant.revocationAskedAt == nil {
                abandoned[grant.id] = number
            } else if let seen = claim.seen, seen.wasTried(before: grant) {
                done[grant.id] = number
            } else if grant.revocationAskedAt != nil, claim.dueBy != nil, let dueAt = grant.dueAt,
                freeRevocations == 0
            {
                // Only the claim has shown that it is one.
                gates[grant.clientID]?.deferredRevocations.set(grant.id.rawValue, deadline: dueAt)
                deferred[grant.id] = number
            } else {
                if grant.revocationAskedAt != nil { freeRevocations -= 1 }
                let refresh = InFlightRefresh(
                    grant: grant,
                    isForced: claim.dueBy == nil,
                    needsHealth: gates[grant.clientID]?.isBreakerIdle != true,
                    leaseEnd: leasesEnd
                )
                slots[grant.id]?.refresh = refresh
                sent.append(refresh)
            }
        }
        var actions: [EngineAction] = []
        if !sent.isEmpty { actions.append(.send(sent)) }
        if !abandoned.isEmpty { actions.append(.release(abandoned, end: .abandoned)) }
        if !done.isEmpty { actions.append(.release(done, end: .handledElsewhere)) }
        if !deferred.isEmpty { actions.append(.release(deferred, end: .deferred)) }
        actions.append(.expectResults(inFlight: slots.count))
        end(lost, as: isStopping ? .abandoned : .handledElsewhere, &actions)
        return (lost.count + deferred.count, actions)
    }

    /// The store has failed to claim.
    ///
    /// `jitter` is a random number between 0 and 1.
    ///
    /// Returns a claim for each grant if the failure can concern one row: a row that the store cannot read must not keep
    /// the others of its batch from being refreshed. Returns none if the grants are given up.
    mutating func claimFailed(
        _ claim: ClaimRequest,
        _ concernsOneRow: Bool,
        at instant: BootInstant,
        jitter: Double
    ) -> [ClaimRequest] {
        if !concernsOneRow { claimBackOff.fail(at: instant, jitter: jitter) }
        guard concernsOneRow, claim.ids.count > 1 else { return [] }
        return claim.ids.map { ClaimRequest(ids: [$0], dueBy: claim.dueBy, seen: claim.seen) }
    }
}

extension Grant {
    /// `true` if the grant was tried, or got another token, between this reading and a later one.
    fileprivate func wasTried(before later: Grant) -> Bool {
        lastAttemptAt != later.lastAttemptAt || accessToken != later.accessToken
    }
}

/// The pause between claims while the store fails: a call might wait for seconds before it fails.
struct ClaimBackOff: Sendable {
    private static let backOff = BackOff(first: .seconds(1), maximum: .seconds(5))

    /// Longer than the longest claim with its pause.
    private static let memory: Duration = .seconds(30)

    /// The number of claims that failed in a row.
    private(set) var failures = 0
    private var failingSince: BootInstant?
    private var resumesAt: BootInstant

    init(at instant: BootInstant) {
        resumesAt = instant
    }

    mutating func succeed() {
        failures = 0
        failingSince = nil
    }

    /// Records a failure.
    ///
    /// `jitter` is a random number between 0 and 1.
    mutating func fail(at instant: BootInstant, jitter: Double) {
        failures += 1
        failingSince = failingSince ?? instant
        resumesAt = instant + Self.backOff.delay(failures: failures, remainingLife: nil, jitter: jitter)
    }

    /// Returns the time for which claims have failed, or `nil` if the last one succeeded, or was long ago: without
    /// another grant to claim, nothing is known.
    func failingFor(at instant: BootInstant) -> Duration? {
        guard let failingSince, instant - resumesAt < Self.memory else { return nil }
        return instant - failingSince
    }

    /// Returns the time until the next claim, or `nil` if one can go now.
    func pause(at instant: BootInstant) -> Duration? {
        guard failures > 0, resumesAt > instant else { return nil }
        return resumesAt - instant
    }
}

/// Decides when this worker can claim grants whose earlier claim has ended without a result.
///
/// After an outage of the store the other workers can still hold answers in memory, but could not renew their leases.
/// They get the duration of a lease to store what they hold, or to renew. Only a successful write shows that they can: a
/// server whose disk is full still answers reads.
struct TakeoverPause: Sendable {
    private let silence: Duration
    private var lastWrite: BootInstant
    private var end: BootInstant

    /// Creates it for a worker that has just written to the store.
    ///
    /// An outage is a time without a successful write that is longer than `silence`.
    init(after silence: Duration, at instant: BootInstant) {
        self.silence = silence
        lastWrite = instant
        end = instant
    }

    /// The store has accepted a write.
    mutating func written(at instant: BootInstant) {
        if isOutage(at: instant) { end = instant + Lease.span }
        lastWrite = instant
    }

    /// The process has waited for the store since this instant, before there was an engine.
    mutating func waited(since instant: BootInstant) { lastWrite = min(lastWrite, instant) }

    func isOver(at instant: BootInstant) -> Bool { instant >= end && !isOutage(at: instant) }

    private func isOutage(at instant: BootInstant) -> Bool { instant - lastWrite > silence }
}

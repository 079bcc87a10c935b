import Base
import Storage

/// The claim: grants are leased in the store before they are sent.
extension RefreshEngine {
    typealias ClaimRequest = RefreshEngineState.ClaimRequest
    typealias ClaimOutcome = RefreshEngineState.ClaimOutcome

    /// Claims grants and sends those that were claimed; returns the completions to await, and the outcome of the claim.
    ///
    /// A grant that is in flight already is joined.
    @discardableResult
    func claimAndSend(
        _ ids: [GrantID],
        dueBy: Timestamp?
    ) async -> (completions: [CompletionSignal], outcome: ClaimOutcome) {
        let (request, completions) = state.reserve(ids, dueBy: dueBy)
        return (completions, await claim(request))
    }

    /// Claims the grants of a request and sends those that were claimed.
    @discardableResult
    func claim(_ request: ClaimRequest) async -> ClaimOutcome {
        var outcome = ClaimOutcome()
        // One claim, or after a failure that may concern one row a claim for each grant.
        var requests = [request][...]
        while let request = requests.popFirst() {
            guard !request.ids.isEmpty else { continue }
            guard !outcome.hasFailed, state.mayClaim(under: conditions) else {
                execute(state.ended(request.ids, as: .abandoned))
                outcome.lost += request.ids.count
                continue
            }
            let leasesEnd = time.sinceBoot + Lease.span
            do {
                let grants = try await store.claim(
                    request.ids,
                    dueBy: request.dueBy,
                    owner: configuration.workerName,
                    for: Lease.span,
                    takesOver: state.takeoverPause.isOver(at: time.sinceBoot)
                )
                state.takeoverPause.reached(at: time.sinceBoot)
                let (lost, actions) = state.claimed(grants, for: request, leasesEnd: leasesEnd)
                execute(actions)
                outcome.lost += lost
            } catch {
                let failure = state.claimFailed(
                    request,
                    concernsOneRow: (error as? StoreError)?.mayConcernOneRow ?? false,
                    at: time.sinceBoot,
                    unit: random.nextUnit()
                )
                switch failure {
                case .claimEach(let each):
                    requests = each[...]
                case .abandon(let failed, let actions):
                    reportStoreFailure(error, waiting: request.ids.count)
                    execute(actions)
                    outcome = ClaimOutcome(lost: outcome.lost + failed.lost, hasFailed: failed.hasFailed)
                }
            }
            reportProgress()
        }
        return outcome
    }
}

/// Claims: grants get a slot before the store is asked for their leases, and are sent if it returns them.
extension RefreshEngineState {
    /// A claim on its way to the store; each of its grants has a slot.
    struct ClaimRequest: Sendable {
        var ids: [GrantID]
        /// The time by which the grants must be due; `nil` for a caller's refresh before that.
        var dueBy: Timestamp?
        /// The grant as a caller had read it: a change by another worker since then counts as done.
        var seen: Grant?
    }

    /// The outcome of a claim.
    struct ClaimOutcome: Hashable {
        /// The number of grants that were not sent: another worker has them, or the store failed.
        var lost = 0
        /// `true` if the store failed in a way that concerns every grant.
        var hasFailed = false
    }

    /// The reaction to a failed claim.
    enum ClaimFailure {
        /// Each grant is claimed alone: one row that the store cannot read must not keep the others of its batch from
        /// being refreshed.
        case claimEach([ClaimRequest])
        case abandon(ClaimOutcome, [EngineAction])
    }

    /// Gives grants a slot; returns their claim, and the completion of each.
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

    /// `true` if the store may be asked for leases.
    func mayClaim(under conditions: Conditions) -> Bool { !isStopping && conditions.isKeyRingComplete }

    /// The store has leased grants, all or some of those that were asked for.
    ///
    /// Leases are released if the stop has begun since the claim was sent: an answer might then never be stored.
    mutating func claimed(
        _ grants: [Grant],
        for claim: ClaimRequest,
        leasesEnd: BootInstant
    ) -> (lost: Int, actions: [EngineAction]) {
        claimBackOff.succeed()
        var sent: [InFlightRefresh] = []
        var abandoned: [GrantID: Int64] = [:]
        var done: [GrantID: Int64] = [:]
        var lost = Set(claim.ids)
        for grant in grants {
            guard let number = grant.lease?.claim else { continue }
            lost.remove(grant.id)
            // With several workers, a grant may end between the selection of due grants and their lease.
            if isStopping || grant.state.endsRefreshes && grant.revocationAskedAt == nil {
                abandoned[grant.id] = number
            } else if let seen = claim.seen, seen.wasTried(before: grant) {
                done[grant.id] = number
            } else {
                let refresh = InFlightRefresh(
                    grant: grant,
                    claim: number,
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
        actions.append(.expectResults(inFlight: slots.count))
        end(lost, as: isStopping ? .abandoned : .handledElsewhere, &actions)
        return (lost.count, actions)
    }

    /// The store has failed to claim; `unit` is a random number between 0 and 1.
    mutating func claimFailed(
        _ claim: ClaimRequest,
        concernsOneRow: Bool,
        at instant: BootInstant,
        unit: Double
    ) -> ClaimFailure {
        if claim.ids.count > 1, concernsOneRow {
            return .claimEach(claim.ids.map { ClaimRequest(ids: [$0], dueBy: claim.dueBy, seen: claim.seen) })
        }
        if !concernsOneRow { claimBackOff.fail(at: instant, unit: unit) }
        let outcome = ClaimOutcome(lost: claim.ids.count, hasFailed: !concernsOneRow)
        return .abandon(outcome, ended(claim.ids, as: .abandoned))
    }

}

extension Grant {
    /// `true` if the grant was tried, or got another token, between this reading and a later one.
    fileprivate func wasTried(before later: Grant) -> Bool {
        lastAttemptAt != later.lastAttemptAt || accessToken != later.accessToken
    }
}

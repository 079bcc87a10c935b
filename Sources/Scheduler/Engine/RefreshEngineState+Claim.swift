import Base
import Storage

/// Claims: grants get a slot before the store is asked for their leases, and are sent if it returns them.
extension RefreshEngineState {
    /// Gives grants a slot, and returns their claim, and the completion of each.
    ///
    /// A grant that has a slot already is joined: it never has a second refresh in flight.
    mutating func reserve(
        _ ids: [GrantID],
        dueBy: Timestamp?,
        seen: Grant? = nil
    ) -> (request: ClaimRequest, completions: [CompletionSignal]) {
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
        var sent: [Refresh] = []
        // Claim numbers of leases that are given back unused.
        var abandoned: [GrantID: Int64] = [:]
        var leftToOthers: [GrantID: Int64] = [:]
        var deferred: [GrantID: Int64] = [:]
        var freeRevocations = grants.contains { $0.revocationAskedAt != nil } ? freeRevocationSlots : 0
        var leased: [GrantID] = []
        leased.reserveCapacity(grants.count)
        for grant in grants {
            guard let number = grant.lease?.claim else { continue }
            leased.append(grant.id)
            switch use(of: grant, claimedBy: claim, freeRevocations: freeRevocations) {
            case .abandon: abandoned[grant.id] = number
            case .leaveToOthers: leftToOthers[grant.id] = number
            case .deferRevocation(let dueAt):
                gates[grant.clientID]?.deferredRevocations.set(grant.id.rawValue, deadline: dueAt)
                deferred[grant.id] = number
            case .send:
                if grant.revocationAskedAt != nil { freeRevocations -= 1 }
                // Read before, so that the grant is moved into its refresh and not copied.
                let id = grant.id
                let needsHealth = gates[grant.clientID]?.isBreakerIdle != true
                let refresh = Refresh(
                    of: grant,
                    isForced: claim.isForCaller,
                    needsHealth: needsHealth,
                    leaseEnd: leasesEnd
                )
                // A change in place through the dictionary's optional allocates memory three times.
                if var slot = slots[id] {
                    slot.refresh = refresh
                    slots[id] = slot
                }
                sent.append(refresh)
            }
        }
        var actions: [EngineAction] = []
        if !sent.isEmpty { actions.append(.send(sent)) }
        if !abandoned.isEmpty { actions.append(.release(abandoned, end: .abandoned)) }
        if !leftToOthers.isEmpty { actions.append(.release(leftToOthers, end: .handledElsewhere)) }
        if !deferred.isEmpty { actions.append(.release(deferred, end: .deferred)) }
        actions.append(.expectResults(inFlight: slots.count))
        let lost = claim.ids(without: leased)
        freeSlots(of: lost, as: isStopping ? .abandoned : .handledElsewhere, &actions)
        return (lost.count + deferred.count, actions)
    }

    /// What becomes of a grant that the store has leased.
    private enum LeasedGrantUse {
        case send
        /// The lease is given back: the worker stops, or the grant has ended.
        case abandon
        /// Another worker has refreshed it since the caller read it.
        case leaveToOthers
        /// Too many revocations are in flight.
        case deferRevocation(until: Timestamp)
    }

    private func use(of grant: Grant, claimedBy claim: ClaimRequest, freeRevocations: Int) -> LeasedGrantUse {
        if isStopping { return .abandon }
        // Only the claim has shown that it is a revocation.
        let isRevocation = grant.revocationAskedAt != nil
        // With several workers, a grant might end between the selection of due grants and their lease.
        if grant.state.endsRefreshes, !isRevocation { return .abandon }
        if let seen = claim.seen, seen.wasTried(before: grant) { return .leaveToOthers }
        if isRevocation, !claim.isForCaller, freeRevocations == 0, let dueAt = grant.dueAt {
            return .deferRevocation(until: dueAt)
        }
        return .send
    }

    /// Records the time that the store took for a claim, which limits and paces allow for.
    mutating func recordClaim(took latency: Duration, at instant: BootInstant) {
        inFlightLimit.recordClaim(latency, at: instant)
        let usual = inFlightLimit.claims.firstQuartile
        for client in gates.keys { gates[client]?.pacer.claimTime = usual }
    }

    /// The store has failed to claim.
    ///
    /// `jitter` is a random number between 0 and 1.
    ///
    /// Returns a claim for each grant if the failure can concern one row: a row that the store cannot read must not
    /// keep the others of its batch from being refreshed. Returns none if the grants are given up.
    mutating func claimFailed(
        _ claim: ClaimRequest,
        concernsOneRow: Bool,
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

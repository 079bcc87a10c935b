import Base
import Storage

/// The end of a claim.
struct ClaimOutcome {
    /// The grants that were not sent: another worker has them, they are deferred revocations, or the store failed.
    var unsent = 0
    /// `true` if the store failed, and would fail for every other grant.
    var hasFailed = false
}

/// The claim: grants are leased in the store before they are sent.
extension RefreshEngine {
    /// Claims the grants of a request, and sends those that were claimed.
    @discardableResult
    func claim(_ request: ClaimRequest) async -> ClaimOutcome {
        guard !request.ids.isEmpty else { return ClaimOutcome() }
        guard state.mayClaim(under: conditions) else { return abandon(request) }
        let start = time.sinceBoot
        do {
            let grants = try await store.claim(
                request.ids,
                dueBy: request.dueBy,
                owner: configuration.workerName,
                for: Lease.span,
                takesOver: state.takeoverPause.isOver(at: start)
            )
            let end = time.sinceBoot
            // A claim of nothing has written nothing: a server whose disk is full accepts it.
            if !grants.isEmpty { state.takeoverPause.written(at: end) }
            state.recordClaim(took: end - start, at: end)
            let (unsent, actions) = state.claimed(grants, for: request, leasesEnd: start + Lease.span)
            execute(actions)
            reportProgress()
            return ClaimOutcome(unsent: unsent)
        } catch {
            return await claimFailed(request, with: error)
        }
    }

    /// Gives up a claim that failed, or claims its grants one by one: one row that the store cannot read must not keep
    /// the others of its batch from being refreshed.
    private func claimFailed(_ request: ClaimRequest, with error: any Error) async -> ClaimOutcome {
        let concernsOneRow = (error as? StoreError)?.mayConcernOneRow ?? false
        let each = state.claimFailed(
            request,
            concernsOneRow: concernsOneRow,
            at: time.sinceBoot,
            jitter: random.nextUnit()
        )
        reportProgress()
        if each.isEmpty {
            reportStoreFailure(error, waiting: request.ids.count)
            return abandon(request, hasFailed: !concernsOneRow)
        }
        var outcome = ClaimOutcome()
        for request in each {
            let one = outcome.hasFailed ? abandon(request, hasFailed: true) : await claim(request)
            outcome.unsent += one.unsent
            outcome.hasFailed = one.hasFailed
        }
        return outcome
    }

    private func abandon(_ request: ClaimRequest, hasFailed: Bool = false) -> ClaimOutcome {
        execute(state.freeSlots(of: request.ids, as: .abandoned))
        return ClaimOutcome(unsent: request.ids.count, hasFailed: hasFailed)
    }
}

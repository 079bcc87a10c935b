import Base
import Storage

/// The claim: grants are leased in the store before they are sent.
extension RefreshEngine {
    /// Claims the grants of a request and sends those that were claimed.
    ///
    /// Returns the number of those that were not sent: another worker has them, they are deferred revocations, or the
    /// store failed. `hasFailed` is `true` if the failure concerns every grant.
    func claim(_ request: ClaimRequest) async -> (unsent: Int, hasFailed: Bool) {
        guard !request.ids.isEmpty else { return (0, false) }
        guard state.mayClaim(under: conditions) else { return (abandon(request), false) }
        let start = time.sinceBoot
        let leasesEnd = start + Lease.span
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
            let (unsent, actions) = state.claimed(grants, for: request, leasesEnd: leasesEnd)
            execute(actions)
            reportProgress()
            return (unsent, false)
        } catch {
            let concernsOneRow = (error as? StoreError)?.mayConcernOneRow ?? false
            let each = state.claimFailed(request, concernsOneRow: concernsOneRow, at: time.sinceBoot, jitter: random.nextUnit())
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

import Base
import Storage

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

    /// `true` if the store may be asked for leases.
    func mayClaim(under conditions: Conditions) -> Bool { !isStopping && conditions.isKeyRingComplete }

    /// The store has leased grants, all or some of those that were asked for.
    ///
    /// Leases are released if the stop has begun since the claim was sent: an answer might then never be stored.
    mutating func claimed(
        _ grants: [Grant],
        for claim: ClaimRequest,
        leasesEnd: BootInstant
    ) -> (outcome: ClaimOutcome, actions: [EngineAction]) {
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
        return (ClaimOutcome(lost: lost.count), actions)
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
        return .abandon(ClaimOutcome(lost: claim.ids.count, hasFailed: !concernsOneRow), abandon(claim))
    }

    /// Ends a claim that is not sent to the store.
    mutating func abandon(_ claim: ClaimRequest) -> [EngineAction] {
        var actions: [EngineAction] = []
        end(claim.ids, as: .abandoned, &actions)
        return actions
    }

    /// `true` if leases should be released: while the store fails, a stop does not wait for it, and the leases expire.
    func mayRelease(under conditions: Conditions) -> Bool {
        !isStopping || !conditions.isCommitFailing && claimBackOff.failures == 0
    }
}

extension Grant {
    /// `true` if the grant was tried, or got another token, between this reading and a later one.
    fileprivate func wasTried(before later: Grant) -> Bool {
        lastAttemptAt != later.lastAttemptAt || accessToken != later.accessToken
    }
}

/// The pause between claims while the store fails: a call may wait for seconds before it fails.
struct ClaimBackOff: Sendable {
    private static let backOff = BackOff(first: .seconds(1), longest: .seconds(5))

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

    /// Records a failure; `unit` is a random number between 0 and 1.
    mutating func fail(at instant: BootInstant, unit: Double) {
        failures += 1
        failingSince = failingSince ?? instant
        resumesAt = instant + Self.backOff.delay(failures: failures, remainingLife: nil, unit: unit)
    }

    /// Returns the time for which claims have failed; `nil` if the last one succeeded, or was long ago: without another
    /// grant to claim, nothing is known.
    func failingFor(at instant: BootInstant) -> Duration? {
        guard let failingSince, instant - resumesAt < Self.memory else { return nil }
        return instant - failingSince
    }

    /// Returns the time until the next claim; `nil` if one may go now.
    func pause(at instant: BootInstant) -> Duration? {
        guard failures > 0, resumesAt > instant else { return nil }
        return resumesAt - instant
    }
}

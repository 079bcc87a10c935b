package import Store

/// The outcome of one refresh after its commit.
package struct CommittedResult: Sendable {
    package var result: RefreshResult
    package var decision: RefreshDecision
    /// The events of other grants that were recalled because of this result.
    package var recalled: [GrantEvent] = []

    /// The grant as stored; `nil` if it has been deleted since the claim.
    package var grant: Grant? { decision.grant }
    package var health: ClientHealth { decision.health }
}

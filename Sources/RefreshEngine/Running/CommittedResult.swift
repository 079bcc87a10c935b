package import Store

/// The outcome of one refresh after its commit.
package struct CommittedResult: Sendable {
    package var result: RefreshResult
    package var decision: RefreshDecision
    /// The events of other grants that were recalled because of this result.
    package var recalled: [GrantEvent] = []
    /// `true` if it was stored without its client's health.
    package var isPlain = false

    /// The grant as stored; `nil` if it has been deleted since the claim.
    package var grant: Grant? { decision.grant }
    /// The client's health as stored; `nil` if it was not read.
    package var health: ClientHealth? { isPlain ? nil : decision.health }
}

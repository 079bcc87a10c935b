package import Storage

/// The outcome of one refresh after its commit.
///
/// It is shared on its way from the commit to the log and the callers, because copies of decisions are costly.
package final class CommittedResult: Sendable {
    package let result: RefreshResult
    package let decision: RefreshDecision
    /// The events of other grants that were recalled because of this result.
    package let recalled: [GrantEvent]
    /// `true` if it was stored without its client's health.
    package let isPlain: Bool

    init(
        result: RefreshResult,
        decision: consuming RefreshDecision,
        recalled: [GrantEvent] = [],
        isPlain: Bool = false
    ) {
        self.result = result
        self.decision = decision
        self.recalled = recalled
        self.isPlain = isPlain
    }

    /// The grant as stored; `nil` if it has been deleted since the claim.
    package var grant: Grant? { decision.grant }
    /// The client's health as this result left it; `nil` if it was not read.
    ///
    /// The last result of a client in a batch has the health that was stored.
    package var health: ClientHealth? { isPlain ? nil : decision.health }
}

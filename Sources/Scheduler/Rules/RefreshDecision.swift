import Base
import Storage
import Telemetry

/// The decision of the rules about one result: the values to store, and the actions that follow the commit.
struct RefreshDecision: Sendable {
    var outcome: RefreshOutcome
    /// The grant as it is to be stored, or `nil` if it has been deleted since the claim.
    var grant: Grant?
    /// The events for the grant's history.
    var events: [GrantEvent] = []
    /// The client's health as it is to be stored.
    var health: ClientHealth
    var effect = ClientEffect()
    /// The grants to recall, which this client's wave ended before it was recognised.
    var recalls: [GrantID] = []
    /// `true` if a revocation was sent, which has ended every grant of the account.
    var endsAccount = false
    /// `true` if only the success of another grant can show if this grant is at fault, or its client.
    var needsHealthyGrant = false
    /// The scopes that the grant had before this answer and has lost with it.
    var lostScopes: [String] = []
    var alarm: Alarm?

    /// An event that a person must look at.
    struct Alarm: Sendable {
        let kind: AlarmKind
        let text: String
    }

    var isRefreshed: Bool { outcome == .refreshed }
    /// `true` if the result does not count any more.
    var isVoid: Bool { outcome == .void }
}

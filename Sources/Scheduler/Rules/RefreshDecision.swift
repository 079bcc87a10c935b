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

extension StoreTransaction {
    /// Stores the grant of a decision about a stored one, with its history and the notices that are due. The caller
    /// stores the health.
    func store(_ decision: RefreshDecision, about stored: Grant, at now: Timestamp) throws {
        guard let grant = decision.grant else { return }
        try update(grant)
        try record(decision, changing: stored, to: grant, at: now)
    }

    /// Stores a decision about a grant as it was claimed. If the stored grant has changed since, it stores nothing and
    /// returns `false`.
    func store(_ decision: RefreshDecision, replacing claimed: Grant, at now: Timestamp) throws -> Bool {
        guard let grant = decision.grant, try replace(claimed, by: grant) else { return false }
        try record(decision, changing: claimed, to: grant, at: now)
        return true
    }

    private func record(
        _ decision: RefreshDecision,
        changing former: Grant,
        to grant: Grant,
        at now: Timestamp
    ) throws {
        for event in decision.events {
            try record(event)
            if event.kind == .rotated { try rememberSpentToken(of: former, at: now) }
        }
        guard !decision.lostScopes.isEmpty else { return }
        let lost = decision.lostScopes.joined(separator: " ")
        try notify(.lostScopes(of: grant.id, lost: lost, granted: grant.scope), ofUser: grant.userID, at: now)
    }
}

/// The changes of a client's health by an answer that have a consequence of their own.
struct ClientEffect {
    var breakerChange: Breaker.Change?
    var limitsChanged = false
    /// `true` if the answer ends an outage of the endpoint, so that the grants that failed during it are tried again
    /// at once.
    var endsOutage = false

    /// Adds the effect of plain refreshes that were counted before this answer.
    mutating func add(_ other: ClientEffect) {
        breakerChange = breakerChange ?? other.breakerChange
        endsOutage = endsOutage || other.endsOutage
    }
}

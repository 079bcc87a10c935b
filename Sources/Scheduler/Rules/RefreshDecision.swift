import Base
package import Storage
package import Telemetry

/// The decision of the rules about one result: the values to store, and the actions that follow the commit.
package struct RefreshDecision: Sendable {
    package var outcome: RefreshOutcome
    /// The grant as it is to be stored; `nil` if it has been deleted since the claim.
    package var grant: Grant?
    /// The events for the grant's history.
    package var events: [GrantEvent]
    /// The client's health as it is to be stored.
    package var health: ClientHealth
    package var breakerChange: Breaker.Change?
    package var limitsChanged = false
    /// `true` if this answer ends an outage of the endpoint, so that the grants that failed during it are tried again
    /// at once.
    package var endsOutage = false
    /// The grants to recall, which this client's wave ended before it was recognised.
    package var recalls: [GrantID] = []
    /// `true` if a revocation was sent, which has ended every grant of the account.
    package var endsAccount = false
    /// `true` if only the success of another grant can show if this grant is at fault, or its client.
    package var needsWitness = false
    /// The scopes that the grant had before this answer and has lost with it.
    package var lostScopes: [String] = []
    package var alarm: Alarm?

    init(
        _ outcome: RefreshOutcome,
        grant: consuming Grant?,
        events: [GrantEvent] = [],
        health: consuming ClientHealth,
        alarm: Alarm? = nil
    ) {
        self.outcome = outcome
        self.grant = grant
        self.events = events
        self.health = health
        self.alarm = alarm
    }

    /// Adds the consequences of plain refreshes that were counted before this decision.
    mutating func add(_ effect: ClientEffect) {
        breakerChange = breakerChange ?? effect.breakerChange
        endsOutage = endsOutage || effect.endsOutage
    }
}

extension StoreTransaction {
    /// Stores the grant of a decision, with its history and the notices that are due; the caller stores the health.
    func store(_ decision: RefreshDecision, at now: Timestamp) throws {
        guard let grant = decision.grant else { return }
        try update(grant)
        try record(decision, about: grant, at: now)
    }

    /// Stores a decision about a grant as it was claimed; returns `false`, and stores nothing, if the stored grant has
    /// changed since.
    func store(_ decision: RefreshDecision, replacing claimed: Grant, at now: Timestamp) throws -> Bool {
        guard let grant = decision.grant, try replace(claimed, by: grant) else { return false }
        try record(decision, about: grant, at: now)
        return true
    }

    private func record(_ decision: RefreshDecision, about grant: Grant, at now: Timestamp) throws {
        for event in decision.events { try record(event) }
        guard !decision.lostScopes.isEmpty else { return }
        let lost = decision.lostScopes.joined(separator: " ")
        try notify(.lostScopes(of: grant.id, lost: lost, granted: grant.scope), ofUser: grant.userID, at: now)
    }
}

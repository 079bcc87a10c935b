import Base
import Storage
import Telemetry

/// The decision of the rules about one result: the values to store, and the actions that follow the commit.
struct RefreshDecision: Sendable {
    var outcome: RefreshOutcome
    /// The grant as it is to be stored; `nil` if it has been deleted since the claim.
    var grant: Grant?
    /// The events for the grant's history.
    var events: [GrantEvent]
    /// The client's health as it is to be stored.
    var health: ClientHealth
    var breakerChange: Breaker.Change?
    var limitsChanged = false
    /// `true` if this answer ends an outage of the endpoint, so that the grants that failed during it are tried again
    /// at once.
    var endsOutage = false
    /// The grants to recall, which this client's wave ended before it was recognised.
    var recalls: [GrantID] = []
    /// `true` if a revocation was sent, which has ended every grant of the account.
    var endsAccount = false
    /// `true` if only the success of another grant can show if this grant is at fault, or its client.
    var needsWitness = false
    /// The scopes that the grant had before this answer and has lost with it.
    var lostScopes: [String] = []
    var alarm: Alarm?

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

/// The changes of a client's health by an answer that have a consequence of their own.
struct ClientEffect {
    var breakerChange: Breaker.Change?
    var limitsChanged = false
    var endsOutage = false
}

/// All that the rules know when they decide about a result.
struct DecisionContext: Sendable {
    var result: RefreshResult
    /// The grant as stored at this instant.
    var grant: Grant
    /// The health of the grant's client as stored at this instant.
    var health: ClientHealth
    var now: Timestamp
    var instant: BootInstant
    /// A random number in 0..<1, for back-off.
    var unit: Double

    /// `true` while the lease of the result's claim is stored: no other worker has claimed the grant since.
    var holdsLease: Bool { grant.lease?.claim == result.attempt.claim }

    /// `true` if the request was sent with the current version of the refresh token.
    ///
    /// After a restore, the token of a user who signs in again can get a number that another token had. So tokens are
    /// compared too.
    var isCurrent: Bool {
        let attempt = result.attempt
        return grant.generation == attempt.generation
            && (attempt.refreshToken == nil || !result.answer.containsTokens || grant.holds(attempt.refreshToken))
    }

    /// Returns the health with one more answer that shows if the grant's token is alive.
    ///
    /// Grants that never worked do not count, so that dead tokens which strangers bring cannot look like a wave.
    func healthRecordingAnswer(isInvalidGrant: Bool) -> ClientHealth {
        guard grant.isProven else { return health }
        var health = health
        health.recordAnswer(isInvalidGrant: isInvalidGrant, at: now)
        return health
    }
}

/// An event that a person must look at.
struct Alarm: Hashable, Sendable {
    var kind: AlarmKind
    var clientID: String
    var text: String
}

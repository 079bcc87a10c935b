import Storage

struct AppliedSecurityEvent: Sendable {
    let kind: String
    var outcome: SecurityEventOutcome
    var grants = 0
    var sessions = 0
    /// State changes of grants, for the logs.
    var changes: [GrantEvent] = []
}

/// What was done about an event, in words that the metrics log explains.
enum SecurityEventOutcome: String, Sendable {
    case applied, unmatched, ambiguous, outdated, recorded, repeated
}

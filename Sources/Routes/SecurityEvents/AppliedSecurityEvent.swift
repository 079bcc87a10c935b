import Storage
import Telemetry

/// The result of one event.
struct AppliedSecurityEvent: Sendable {
    let kind: String
    var outcome: SecurityEventEvent.Outcome
    var grants = 0
    var sessions = 0
    /// State changes of grants, for the logs.
    var changes: [GrantEvent] = []
}

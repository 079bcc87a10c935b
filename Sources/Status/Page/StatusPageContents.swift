package import Base
package import Storage
package import Telemetry

/// Everything that the status page shows, as of one instant.
///
/// Only ``lookup`` is about a user; the rest is counts, client ids and the ids of grants. It has no token and no key.
package struct StatusPageContents: Sendable {
    /// The state of one client id.
    package struct Client: Sendable {
        var id: String
        /// `closed`, `open` or `probing`.
        var breaker: String
        /// The reason why requests stopped, while the breaker is not closed.
        var breakerReason: String?
        /// The requests per second that are allowed now.
        var ceiling: Double
        var isSlowed: Bool
        /// The remaining time of a pause that the endpoint asked for.
        var pause: Duration?
        var lastSuccessAt: Timestamp?

        package init(
            id: String,
            breaker: String,
            breakerReason: String? = nil,
            ceiling: Double,
            isSlowed: Bool = false,
            pause: Duration? = nil,
            lastSuccessAt: Timestamp? = nil
        ) {
            self.id = id
            self.breaker = breaker
            self.breakerReason = breakerReason
            self.ceiling = ceiling
            self.isSlowed = isSlowed
            self.pause = pause
            self.lastSuccessAt = lastSuccessAt
        }
    }

    /// The answer to an operator who looked up a user.
    package enum Lookup: Sendable {
        case found(Grant, history: [GrantEvent])
        case unknownUser(String)
    }

    var at: Timestamp
    /// The worker that serves the page.
    var worker: String
    var version: String
    var startedAt: Timestamp
    /// `starting`, `serving`, `not ready` or `draining`.
    var phase: String
    /// `nil` if there is none yet.
    package var judgement: Judgement?
    /// The time of the grants, clients, workers and notices, which are the last known ones; `nil` if none are known.
    package var countedAt: Timestamp?
    /// `nil` if no counts of the last ten minutes are known.
    package var grants: GrantStatistics?
    /// The last sixty minutes of this worker, the oldest first.
    package var activity: [RecentActivity.Minute]
    package var clients: [Client]
    /// `nil` if no counts of the last ten minutes are known.
    package var workers: [WorkerReport]?
    /// The last changes of grants that this worker made, the newest first.
    package var changes: [RecentChanges.Change]
    /// `nil` without ``grants``, and if notices are not configured.
    package var notices: PendingNotices?
    package var lookup: Lookup?

    package init(at: Timestamp, worker: String, version: String, startedAt: Timestamp, phase: String) {
        self.at = at
        self.worker = worker
        self.version = version
        self.startedAt = startedAt
        self.phase = phase
        activity = []
        clients = []
        changes = []
    }
}

package import Base

/// The counts of one interval, and the state at its end.
package struct SummaryEvent: MetricsEvent {
    package static let name = "summary"

    package static let fields: [MetricsField] =
        [.always("interval_ms", .integer, "the length of the interval")]
        + RefreshOutcome.allCases.map { outcome in
            .always(outcome.rawValue, .integer, "tries in the interval with the outcome `\(outcome.rawValue)`")
        } + [
            .always("in_flight", .integer, "refreshes in flight: begun, and their result is not stored yet"),
            .always("due", .integer, "grants that are due or soon will be, as far as the worker looks ahead"),
            .always("overdue", .integer, "grants whose due time has passed"),
            .always("oldest_overdue_ms", .integer, "the time by which the most overdue grant is overdue; 0 if none is"),
            .always(
                "expiring",
                .integer,
                """
                connected grants whose refresh token expires within three days, or that were not refreshed for five \
                months
                """
            ),
            .always("dropped_lines", .integer, "lines of this log lost since the worker started; it only grows"),
            .always("http_new_connections", .integer, "connections opened in the interval"),
            .always("http_reused", .integer, "requests in the interval that went over a connection already open"),
            .sometimes("grants_active", .integer, "grants in the state `active`; either all five are given or none"),
            .sometimes("grants_retrying", .integer, "grants in the state `retrying`"),
            .sometimes("grants_suspended", .integer, "grants in the state `suspended`"),
            .sometimes("grants_reauth_required", .integer, "grants in the state `reauth_required`"),
            .sometimes("grants_disconnected", .integer, "grants in the state `disconnected`"),
            .sometimes("latency_p50_ms", .integer, "half the answers came within this; only if any came"),
            .sometimes("latency_p95_ms", .integer, "95 % of the answers came within this; only if any came"),
            .sometimes("latency_p99_ms", .integer, "99 % of the answers came within this; only if any came"),
            .sometimes("lateness_p50_ms", .integer, "half the tries came at most this late; only if any was made"),
            .sometimes("lateness_p95_ms", .integer, "95 % of the tries came at most this late; only if any was made"),
            .sometimes("lateness_p99_ms", .integer, "99 % of the tries came at most this late; only if any was made"),
        ]

    /// The number of grants in each state.
    package struct GrantCounts: Sendable {
        package var active: Int
        package var retrying: Int
        package var suspended: Int
        package var reauthRequired: Int
        package var disconnected: Int

        package init(active: Int, retrying: Int, suspended: Int, reauthRequired: Int, disconnected: Int) {
            self.active = active
            self.retrying = retrying
            self.suspended = suspended
            self.reauthRequired = reauthRequired
            self.disconnected = disconnected
        }
    }

    /// The counts of the interval.
    package var counts: IntervalCounts
    /// The number of refreshes in flight.
    package var inFlight: Int
    /// Grants that are due or will be within the worker's window.
    package var due: Int
    /// Grants whose due time has passed.
    package var overdue: Int
    /// The time by which the most overdue grant is overdue.
    package var oldestOverdue: Duration
    /// Grants whose refresh token will expire soon.
    package var expiring: Int
    /// Lines of the log lost since the start (see ``MetricsLog/droppedLines``).
    package var droppedLines: Int
    /// Connections opened in the interval.
    package var newConnections: Int
    /// Requests in the interval that went over a connection already open.
    package var reusedConnections: Int
    /// The number of grants in each state, if they were counted.
    package var grants: GrantCounts?

    package init(
        counts: IntervalCounts,
        inFlight: Int,
        due: Int,
        overdue: Int,
        oldestOverdue: Duration,
        expiring: Int,
        droppedLines: Int,
        newConnections: Int,
        reusedConnections: Int,
        grants: GrantCounts?
    ) {
        self.counts = counts
        self.inFlight = inFlight
        self.due = due
        self.overdue = overdue
        self.oldestOverdue = oldestOverdue
        self.expiring = expiring
        self.droppedLines = droppedLines
        self.newConnections = newConnections
        self.reusedConnections = reusedConnections
        self.grants = grants
    }

    package func write(into line: inout JSONLine) {
        line.milliseconds("interval_ms", counts.interval)
        for outcome in RefreshOutcome.allCases { line.field(outcome.rawValue, counts.outcomes[outcome, default: 0]) }
        line.field("in_flight", inFlight)
        line.field("due", due)
        line.field("overdue", overdue)
        line.milliseconds("oldest_overdue_ms", oldestOverdue)
        line.field("expiring", expiring)
        line.field("dropped_lines", droppedLines)
        line.field("http_new_connections", newConnections)
        line.field("http_reused", reusedConnections)
        if let grants {
            line.field("grants_active", grants.active)
            line.field("grants_retrying", grants.retrying)
            line.field("grants_suspended", grants.suspended)
            line.field("grants_reauth_required", grants.reauthRequired)
            line.field("grants_disconnected", grants.disconnected)
        }
        counts.latency?.write("latency", into: &line)
        counts.lateness?.write("lateness", into: &line)
    }
}

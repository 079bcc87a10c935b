import Base
import HTTPClient
import Storage
import Telemetry

extension MetricsEvent {
    /// The counts of one interval, and the state at its end.
    ///
    /// `waiting` are the grants in memory that are not due yet.
    static func summary(
        of counts: IntervalCounts,
        grants: GrantStatistics,
        at now: Timestamp,
        inFlight: Int,
        waiting: Int,
        droppedLines: Int,
        http: HTTPClient.Counters,
        since previous: HTTPClient.Counters
    ) -> MetricsEvent {
        MetricsEvent("summary") { line in
            line.milliseconds("interval_ms", counts.interval, "the length of the interval")
            for outcome in RefreshOutcome.allCases {
                line.number(outcome.rawValue, counts.outcomes[outcome, default: 0], "tries, by outcome")
            }
            line.number("not_logged", counts.notLogged, "of the refreshed ones, those without a line (`--log-sample`)")
            line.number("in_flight", inFlight, "refreshes begun whose result is not stored yet")
            line.number("due", waiting + grants.due, "grants due, or soon due as far as the worker looks ahead")
            line.number("overdue", grants.due, "grants whose due time has passed")
            line.milliseconds(
                "oldest_overdue_ms",
                grants.oldestDueAt.map { now - $0 } ?? .zero,
                "how long the oldest of them is overdue; 0 for none"
            )
            line.number(
                "expiring",
                grants.refreshTokensEnding + grants.idle,
                "connected grants whose refresh token expires within three days, or not refreshed for five months"
            )
            line.number("dropped_lines", droppedLines, "lines of this log lost since the worker started")
            line.number(
                "http_new_connections",
                http.newConnections - previous.newConnections,
                "connections opened"
            )
            line.number(
                "http_reused",
                http.reusedConnections - previous.reusedConnections,
                "requests over a connection already open"
            )
            for state in GrantState.allCases {
                line.number("grants_\(state.rawValue)", grants.byState[state] ?? 0, "grants, by state")
            }
            line.percentiles("latency", counts.latency, "within which 50, 95 and 99 % of the answers came")
            line.percentiles("lateness", counts.lateness, "by which 50, 95 and 99 % of the tries were late at most")
        }
    }
}

// MARK: Grants

extension MetricsEvent {
    /// A grant's move from one state to another.
    package static func state(
        grant: String,
        from: String,
        to: String,
        reason: String,
        generation: Int64
    ) -> MetricsEvent {
        MetricsEvent("state") { line in
            line.text("grant", grant, "the grant's id, 16 hexadecimal digits")
            line.text("from", from, "the state that it left, as in `active` or `retrying`")
            line.text("to", to, "the state that it entered, as in `disconnected`")
            line.text("reason", reason, "the code of the reason; empty where there is none")
            line.number("generation", Int(generation), "the version of the stored refresh token after the move")
        }
    }

    /// One try to deliver a notice to the backend.
    package static func notice(
        _ notice: String,
        type: String,
        grant: String?,
        outcome: String,
        attempt: Int,
        status: Int?
    ) -> MetricsEvent {
        MetricsEvent("notice") { line in
            line.text("notice", notice, "the notice's id, which its receiver gets too")
            line.text("type", type, "the notice's type, as in `grant.disconnected` or `user.deleted`")
            line.text(
                "grant",
                ifAny: grant,
                "the grant's id, 16 hexadecimal digits; only if the notice is about a grant"
            )
            line.text("outcome", outcome, "`accepted`, `postponed`, or `given_up` after a day of trying")
            line.number("attempt", attempt, "the number of the try, from 1 on")
            line.number("status", ifAny: status, "the receiver's HTTP status; only if it answered")
        }
    }

    /// One event of a security event token that Google sent.
    ///
    /// `token` is a hash that identifies the token. Its own id stays private to Google.
    package static func securityEvent(
        token: String,
        kind: String,
        outcome: SecurityEventOutcome,
        grants: Int = 0,
        sessions: Int = 0
    ) -> MetricsEvent {
        MetricsEvent("security_event") { line in
            line.text(
                "token",
                token,
                "16 hexadecimal digits that identify the token; a token that is sent again has the same"
            )
            line.text(
                "kind",
                kind,
                "the kind of event, as in `tokens_revoked`; `other` for a kind that the worker does not know"
            )
            line.text(
                "outcome",
                outcome.rawValue,
                """
                `applied`; `unmatched` (it does not match anything stored); `ambiguous` (it may match several grants: \
                these are refreshed at once); `outdated` (it may be older than the stored tokens: the grant is \
                refreshed at once); `recorded` (there is nothing to do); `repeated` (the token was received before)
                """
            )
            line.number("grants", grants, "the number of grants that were changed or made due")
            line.number("sessions", sessions, "the number of the app's sessions that ended")
        }
    }
}

package enum SecurityEventOutcome: String, Sendable {
    case applied
    case unmatched
    case ambiguous
    case outdated
    case recorded
    case repeated
}

// MARK: Client ids

extension MetricsEvent {
    /// A change of the breaker of one client id.
    package static func breaker(client: String, _ change: String, reason: String = "") -> MetricsEvent {
        MetricsEvent("breaker") { line in
            line.text("client", client, "the client id")
            line.text(
                "change",
                change,
                "`opened` (requests stop), `probe` (one grant is tried), `closed` (requests go on)"
            )
            line.text("reason", reason, "the code of the reason; empty where there is none")
        }
    }

    /// A change of the pace of one client id.
    package static func pacer(client: String, ceiling: Double, paused: Duration, reason: String) -> MetricsEvent {
        MetricsEvent("pacer") { line in
            line.text("client", client, "the client id")
            line.fraction("ceiling", ceiling, "requests a second that are now allowed")
            line.milliseconds(
                "paused_ms",
                paused,
                "milliseconds during which no request is sent, from now; 0 for no pause"
            )
            line.text("reason", reason, "the code of the reason; empty where there is none")
        }
    }
}

// MARK: Audit

extension MetricsEvent {
    /// The maximum length of a list of scopes that is shown completely, in bytes; requests with longer lists are
    /// refused.
    package static let maximumScopes = 1024

    /// One request of a service for an access token, whatever its outcome.
    package static func vend(
        service: String,
        outcome: String,
        scopes: String,
        forced: Bool,
        grant: String?
    ) -> MetricsEvent {
        MetricsEvent("vend") { line in
            line.text("service", service, "the name of the service that asked, as in the services file")
            line.text(
                "outcome",
                outcome,
                """
                `served` (the stored token), `refreshed` (after a refresh that the service waited for), `warning` (the \
                stored token, while refreshes of the grant fail), else the code of the error, as the routes \
                `/v1/grants/…` answer it
                """
            )
            line.text(
                "scopes",
                scopes,
                maximum: maximumScopes,
                "the scopes that were asked for, separated by spaces; empty where none was named"
            )
            line.flag("forced", forced, "`true` if the service asked for another token than the one it had")
            line.text(
                "grant",
                ifAny: grant,
                "the grant's id, 16 hexadecimal digits; only if the request came as far as a grant"
            )
        }
    }

    /// One user that an operator looked up on the status page, whatever the outcome.
    package static func lookup(service: String, outcome: String, grant: String?) -> MetricsEvent {
        MetricsEvent("lookup") { line in
            line.text("service", service, "the name of the operator's service, as in the services file")
            line.text(
                "outcome",
                outcome,
                """
                `found`, `not_found` (the user has no grant), `forbidden`, `invalid_request`, `store_unavailable` or \
                `audit_unavailable`
                """
            )
            line.text("grant", ifAny: grant, "the grant's id, 16 hexadecimal digits; only if the user was found")
        }
    }
}

// MARK: The worker

/// The number of grants in each state.
package typealias GrantCounts = (
    active: Int, retrying: Int, suspended: Int, reauthRequired: Int, disconnected: Int
)

extension MetricsEvent {
    /// The start of the worker.
    package static func started(version: String, mode: String) -> MetricsEvent {
        MetricsEvent("started") { line in
            line.text("version", version, "the worker's version")
            line.text("mode", mode, "`daemon` or `run_once`")
        }
    }

    /// The worker takes no new work, and finishes or releases its current work.
    package static func stopping(reason: String, inFlight: Int) -> MetricsEvent {
        MetricsEvent("stopping") { line in
            line.text("reason", reason, "the reason for the stop, as in `SIGTERM`")
            line.number("in_flight", inFlight, "refreshes in flight: begun, and their result is not stored yet")
        }
    }

    /// The worker's last line.
    package static func stopped(uptime: Duration) -> MetricsEvent {
        MetricsEvent("stopped") { $0.milliseconds("uptime_ms", uptime, "milliseconds since it started") }
    }

    /// A step of the wall clock.
    package static func clockStep(_ step: Duration) -> MetricsEvent {
        MetricsEvent("clock_step") { line in
            line.milliseconds("step_ms", step, "the size of the step; below 0, the clock was set back")
        }
    }

    /// The result of a pass, which tries each due grant once: the last line on standard output.
    package static func runOnce(
        due: Int,
        refreshed: Int,
        retrying: Int,
        held: Int,
        suspended: Int,
        reauthRequired: Int,
        disconnected: Int,
        skipped: Int,
        spilled: Int,
        lost: Int,
        duration: Duration
    ) -> MetricsEvent {
        MetricsEvent("run_once") { line in
            line.number("due", due, "grants that were due; the next seven sum to it")
            line.number("refreshed", refreshed, "grants with a new access token")
            line.number("retrying", retrying, "grants left for a later pass, for a reason that may pass")
            line.number("held", held, "grants that wait for confirmation")
            line.number("suspended", suspended, "grants that a policy or an administrator blocks")
            line.number("reauth_required", reauthRequired, "grants whose user must sign in again")
            line.number("disconnected", disconnected, "grants that Google said are dead")
            line.number("skipped", skipped, "grants that another worker had claimed")
            line.number(
                "spilled",
                spilled,
                "answers with tokens that the database did not take, kept in the spill file"
            )
            line.number("lost", lost, "answers with tokens that could not be kept anywhere")
            line.milliseconds("duration_ms", duration, "the duration of the pass")
        }
    }

    /// The counts of one interval, and the state at its end.
    ///
    /// `due` are the grants that are due or will be within the worker's window. `grants` is `nil` if they were not
    /// counted.
    package static func summary(
        _ counts: IntervalCounts,
        inFlight: Int,
        due: Int,
        overdue: Int,
        oldestOverdue: Duration,
        expiring: Int,
        droppedLines: Int,
        newConnections: Int,
        reusedConnections: Int,
        grants: GrantCounts?
    ) -> MetricsEvent {
        MetricsEvent("summary") { line in
            line.milliseconds("interval_ms", counts.interval, "the length of the interval")
            for outcome in RefreshOutcome.allCases {
                let code = outcome.rawValue
                line.number(
                    code,
                    counts.outcomes[outcome, default: 0],
                    "tries in the interval with the outcome `\(code)`"
                )
            }
            line.number("in_flight", inFlight, "refreshes in flight: begun, and their result is not stored yet")
            line.number("due", due, "grants that are due or soon will be, as far as the worker looks ahead")
            line.number("overdue", overdue, "grants whose due time has passed")
            line.milliseconds(
                "oldest_overdue_ms",
                oldestOverdue,
                "the time by which the most overdue grant is overdue; 0 if none is"
            )
            line.number(
                "expiring",
                expiring,
                """
                connected grants whose refresh token expires within three days, or that were not refreshed for five \
                months
                """
            )
            line.number(
                "dropped_lines",
                droppedLines,
                "lines of this log lost since the worker started; it only grows"
            )
            line.number("http_new_connections", newConnections, "connections opened in the interval")
            line.number(
                "http_reused",
                reusedConnections,
                "requests in the interval that went over a connection already open"
            )
            line.number(
                "grants_active",
                ifAny: grants?.active,
                "grants in the state `active`; either all five are given or none"
            )
            line.number("grants_retrying", ifAny: grants?.retrying, "grants in the state `retrying`")
            line.number("grants_suspended", ifAny: grants?.suspended, "grants in the state `suspended`")
            line.number(
                "grants_reauth_required",
                ifAny: grants?.reauthRequired,
                "grants in the state `reauth_required`"
            )
            line.number("grants_disconnected", ifAny: grants?.disconnected, "grants in the state `disconnected`")
            line.percentiles("latency", counts.latency, "the answers came within this; only if any came")
            line.percentiles("lateness", counts.lateness, "the tries came at most this late; only if any was made")
        }
    }
}

extension MetricsLine {
    fileprivate mutating func percentiles(_ quantity: String, _ values: Percentiles?, _ meaning: String) {
        number("\(quantity)_p50_ms", ifAny: values.map { Int($0.p50) }, "half \(meaning)")
        number("\(quantity)_p95_ms", ifAny: values.map { Int($0.p95) }, "95 % of \(meaning)")
        number("\(quantity)_p99_ms", ifAny: values.map { Int($0.p99) }, "99 % of \(meaning)")
    }
}

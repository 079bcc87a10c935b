/// All metrics for Prometheus: docs/prometheus.md in code.
package enum PrometheusSchema {
    static let refreshes = PrometheusFamily(
        "refresh_worker_refreshes_total",
        .counter,
        labels: ["outcome"],
        "Tries to refresh a grant, by outcome."
    )
    static let refreshDuration = PrometheusFamily(
        "refresh_worker_refresh_duration_seconds",
        .histogram,
        "Time from sending a refresh to the end of its answer."
    )
    static let vends = PrometheusFamily(
        "refresh_worker_vends_total",
        .counter,
        labels: ["outcome"],
        "Requests for an access token by services, by outcome as in the audit."
    )
    static let vendDuration = PrometheusFamily(
        "refresh_worker_vend_duration_seconds",
        .histogram,
        "Time from a request for an access token to its answer, including its wait for a refresh."
    )
    static let requests = PrometheusFamily(
        "refresh_worker_http_requests_total",
        .counter,
        labels: ["route", "status"],
        "Requests answered, by route and class of the status."
    )
    static let notices = PrometheusFamily(
        "refresh_worker_notices_total",
        .counter,
        labels: ["outcome"],
        "Tries to deliver a notice to the backend, by outcome."
    )
    static let securityEvents = PrometheusFamily(
        "refresh_worker_security_events_total",
        .counter,
        labels: ["type"],
        "Security events received from Google, by type."
    )
    static let alarmsRaised = PrometheusFamily(
        "refresh_worker_alarms_total",
        .counter,
        labels: ["kind"],
        "Alarms raised, as the metrics log has them, by kind."
    )
    static let alarms = PrometheusFamily(
        "refresh_worker_alarms",
        .gauge,
        labels: ["kind"],
        "Alarms whose cause was seen in the last hour and has not ended, by kind."
    )
    static let concerns = PrometheusFamily(
        "refresh_worker_concerns",
        .gauge,
        labels: ["kind"],
        "Concerns of the verdict, by kind; alarms are not among them."
    )
    static let verdict = PrometheusFamily(
        "refresh_worker_well",
        .gauge,
        "1 if the verdict is ok, 0 if something needs attention; left out until it was judged once."
    )
    static let expired = PrometheusFamily(
        "refresh_worker_grants_expired",
        .gauge,
        labels: ["client"],
        "Connected grants without a valid access token, by client id; above 4096 an estimate."
    )
    static let oldestExpired = PrometheusFamily(
        "refresh_worker_oldest_expired_seconds",
        .gauge,
        labels: ["client"],
        "Time for which the longest of them has no valid access token, by client id."
    )
    static let droppedLines = PrometheusFamily(
        "refresh_worker_dropped_lines_total",
        .counter,
        "Lines of the metrics log that were lost."
    )
    static let grants = PrometheusFamily(
        "refresh_worker_grants",
        .gauge,
        labels: ["state"],
        "Grants stored, by state."
    )
    static let due = PrometheusFamily(
        "refresh_worker_grants_due",
        .gauge,
        "Grants that are due or soon will be, as far as the worker looks ahead."
    )
    static let overdue = PrometheusFamily(
        "refresh_worker_grants_overdue",
        .gauge,
        "Grants whose due time has passed."
    )
    static let oldestOverdue = PrometheusFamily(
        "refresh_worker_oldest_overdue_seconds",
        .gauge,
        "Time by which the most overdue grant is overdue, 0 if none is."
    )
    static let inFlight = PrometheusFamily(
        "refresh_worker_refreshes_in_flight",
        .gauge,
        "Refreshes that have begun and whose result is not stored yet."
    )
    static let breaker = PrometheusFamily(
        "refresh_worker_breaker_state",
        .gauge,
        labels: ["client", "state"],
        "1 for the state that the client's breaker is in, 0 for the other two."
    )
    static let ceiling = PrometheusFamily(
        "refresh_worker_pacer_ceiling_per_second",
        .gauge,
        labels: ["client"],
        "Refreshes a second that are allowed for the client now."
    )
    static let storeUp = PrometheusFamily(
        "refresh_worker_store_up",
        .gauge,
        "1 if the database could be read for this answer; if 0, the metrics that need it are left out."
    )
    static let certificateEnd = PrometheusFamily(
        "refresh_worker_internal_certificate_expiry_timestamp_seconds",
        .gauge,
        "Time at which the internal listener's certificate expires, in seconds since 1970; left out without TLS."
    )
    static let startTime = PrometheusFamily(
        "process_start_time_seconds",
        .gauge,
        "Time at which the worker started, in seconds since 1970."
    )
    static let residentMemory = PrometheusFamily(
        "process_resident_memory_bytes",
        .gauge,
        "Resident memory of the process."
    )
    static let openDescriptors = PrometheusFamily("process_open_fds", .gauge, "File descriptors that are open.")

    /// The families in the order of the document and of the output.
    package static let families: [PrometheusFamily] = [
        refreshes, refreshDuration, vends, vendDuration, requests, notices, securityEvents, droppedLines,
        alarmsRaised, alarms, concerns, verdict, grants, due, overdue, oldestOverdue, expired, oldestExpired, inFlight,
        breaker, ceiling, storeUp, certificateEnd, startTime, residentMemory,
        openDescriptors,
    ]
}

/// One Prometheus metric, with its help text from docs/prometheus.md.
package struct PrometheusFamily: Hashable, Sendable {
    package enum Kind: String, Sendable {
        /// It only grows, and starts at 0 with the worker.
        case counter
        case gauge
        case histogram
    }

    package let name: String
    package let kind: Kind
    /// The labels of each sample, in output order.
    package let labels: [String]
    package let help: String

    init(_ name: String, _ kind: Kind, labels: [String] = [], _ help: String) {
        self.name = name
        self.kind = kind
        self.labels = labels
        self.help = help
    }
}

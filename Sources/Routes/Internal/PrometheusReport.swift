import Base
import Scheduler
import Status
import Storage
import Telemetry

/// The content of one response to Prometheus.
///
/// Each metric is named once, with its help text. `make pages` writes the table of docs/prometheus.md from it.
struct PrometheusReport {
    /// The greatest number of client ids with samples of their own: each sample costs Prometheus memory for ever.
    static let maximumClients = 50

    var at: Timestamp
    var version = ""
    var startedAt: Timestamp
    var counts: LifetimeCounts
    var droppedLines = 0
    var inFlight = 0
    /// Grants in memory that are not due yet.
    var waiting = 0
    /// `true` if the database could be read.
    var isStoreRead = false
    /// `nil` if the database cannot be read, or does not count them in time.
    var grants: GrantStatistics?
    /// The clients as this worker knows them.
    var clients: [ClientStatus] = []
    /// The times that the database took to store results.
    var commits = DurationBuckets()
    /// `nil` if no backend is notified, or if the database cannot be read.
    var notices: PendingNotices?
    /// `nil` until they were looked for once.
    var findings: [Finding]?
    /// `nil` if the internal listener does not use TLS.
    var certificateExpiresAt: Timestamp?

    var text: PrometheusText {
        var text = PrometheusText()
        text.gauge(
            "refresh_worker_build_info",
            by: "version",
            samples: [PrometheusText.Sample(labels: [version], value: 1)],
            help: "Always 1; the label is the version of the program."
        )
        writeCounters(into: &text)
        writeVerdict(into: &text)
        if let grants { write(grants, into: &text) }
        text.gauge(
            "refresh_worker_refreshes_in_flight",
            value: Double(inFlight),
            help: "Refreshes begun whose result is not stored yet."
        )
        writeClients(into: &text)
        text.histogram(
            "refresh_worker_commit_duration_seconds",
            of: commits,
            help: "Time that the database took to store a batch of results."
        )
        writeNotices(into: &text)
        text.gauge(
            "refresh_worker_store_up",
            value: isStoreRead ? 1 : 0,
            help: "1 if the database could be read for this answer."
        )
        text.gauge(
            "refresh_worker_internal_certificate_expiry_timestamp_seconds",
            value: certificateExpiresAt.map { Double($0.milliseconds) / 1000 },
            help:
                "Time at which the internal listener's certificate expires, in seconds since 1970; left out without TLS."
        )
        writeProcess(into: &text)
        return text
    }

    private func writeNotices(into text: inout PrometheusText) {
        text.gauge(
            "refresh_worker_notices_waiting",
            value: notices.map { Double($0.count) },
            help:
                "Users whose notices wait for delivery, at most \(PendingNotices.limit); left out without a backend to notify."
        )
        text.gauge(
            "refresh_worker_oldest_notice_seconds",
            value: ageOfOldestNotice?.inSeconds,
            help: "Time for which the oldest notice waits, 0 if none does."
        )
    }

    private var ageOfOldestNotice: Duration? {
        guard let notices else { return nil }
        guard let oldest = notices.oldest else { return .zero }
        return max(.zero, at - oldest)
    }

    private func writeProcess(into text: inout PrometheusText) {
        let usage = ProcessUsage.current
        text.gauge(
            "process_start_time_seconds",
            value: Double(startedAt.milliseconds) / 1000,
            help: "Time at which the worker started, in seconds since 1970."
        )
        text.counter(
            "process_cpu_seconds_total",
            samples: [PrometheusText.Sample(value: usage.cpuTime.inSeconds)],
            help: "Time that the process has spent on processors."
        )
        text.gauge(
            "process_resident_memory_bytes",
            value: usage.residentBytes.map { Double($0) },
            help: "Resident memory of the process."
        )
        text.gauge(
            "process_open_fds",
            value: usage.openDescriptors.map { Double($0) },
            help: "File descriptors that are open."
        )
    }

    private func writeCounters(into text: inout PrometheusText) {
        // Every outcome is present from the start, so that a rate can be computed from its first occurrence.
        text.counter(
            "refresh_worker_refreshes_total",
            by: "outcome",
            samples: RefreshOutcome.allCases.map { outcome in
                PrometheusText.Sample(label: outcome.rawValue, count: counts.refreshes[outcome, default: 0])
            },
            help: "Tries to refresh a grant."
        )
        text.histogram(
            "refresh_worker_refresh_duration_seconds",
            of: counts.refreshDuration,
            help: "Time from sending a refresh to the end of its answer."
        )
        text.counter(
            "refresh_worker_vends_total",
            by: "outcome",
            samples: Self.samples(counts.vends),
            help: "Requests for an access token by services, with the outcome of the audit."
        )
        text.histogram(
            "refresh_worker_vend_duration_seconds",
            of: counts.vendDuration,
            help: "Time from a request for an access token to its answer, with its wait for a refresh."
        )
        text.counter(
            "refresh_worker_http_requests_total",
            by: "route",
            "status",
            samples: counts.requests.sorted { $0.key < $1.key }.map { request, count in
                PrometheusText.Sample(labels: [request.route, request.statusClass], value: Double(count))
            },
            help: "Requests answered, with the class of the status."
        )
        text.counter(
            "refresh_worker_notices_total",
            by: "outcome",
            samples: Self.samples(counts.notices),
            help: "Tries to deliver a notice to the backend."
        )
        text.counter(
            "refresh_worker_security_events_total",
            by: "type",
            samples: Self.samples(counts.securityEvents),
            help: "Security events received from Google."
        )
        text.counter(
            "refresh_worker_dropped_lines_total",
            samples: [PrometheusText.Sample(value: Double(droppedLines))],
            help: "Lines of the metrics log that were lost."
        )
        // Every kind is present from the start, so that an alerting rule finds a series.
        text.counter(
            "refresh_worker_alarms_total",
            by: "kind",
            samples: AlarmKind.allCases.map { kind in
                PrometheusText.Sample(label: kind.rawValue, count: counts.alarms[kind, default: 0])
            },
            help: "Alarms raised, as the metrics log has them."
        )
    }

    private func writeVerdict(into text: inout PrometheusText) {
        let byKind = Dictionary(grouping: findings ?? []) { [$0.kind, $0.severity.rawValue] }
        text.gauge(
            "refresh_worker_concerns",
            by: "kind",
            "severity",
            samples: byKind.sorted { $0.key[0] < $1.key[0] }.map { labels, findings in
                PrometheusText.Sample(labels: labels, value: Double(findings.count))
            },
            help: """
                Concerns of the verdict, alarms among them: `kind` is a section of the runbook, `severity` is `now`, `soon` \
                or `tomorrow`.
                """
        )
        text.gauge(
            "refresh_worker_well",
            value: findings.map { $0.isEmpty ? 1 : 0 },
            help: "1 if the verdict is ok, 0 if there is a concern; left out before the first verdict."
        )
    }

    private func writeClients(into text: inout PrometheusText) {
        text.gauge(
            "refresh_worker_breaker_state",
            by: "client",
            "state",
            samples: clients.flatMap { client in
                ["closed", "open", "probing"].map { state in
                    PrometheusText.Sample(labels: [client.id, state], value: state == client.breaker.name ? 1 : 0)
                }
            },
            help: "1 for the state of the client's breaker, 0 for the others."
        )
        text.gauge(
            "refresh_worker_pacer_ceiling_per_second",
            by: "client",
            samples: clients.map { PrometheusText.Sample(labels: [$0.id], value: $0.ceiling) },
            help: "Refreshes a second that are allowed for the client now."
        )
    }

    private func write(_ grants: GrantStatistics, into text: inout PrometheusText) {
        text.gauge(
            "refresh_worker_grants",
            by: "state",
            samples: GrantState.allCases.map { state in
                PrometheusText.Sample(label: state.rawValue, count: grants.byState[state, default: 0])
            },
            help: "Grants stored."
        )
        text.gauge(
            "refresh_worker_grants_due",
            value: Double(waiting + grants.due),
            help: "Grants that are due or soon will be, as far as the worker looks ahead."
        )
        text.gauge(
            "refresh_worker_grants_overdue",
            value: Double(grants.due),
            help: "Grants whose due time has passed."
        )
        text.gauge(
            "refresh_worker_oldest_overdue_seconds",
            value: (grants.lateness(at: at) ?? .zero).inSeconds,
            help: "Time by which the most overdue grant is overdue, 0 if none is."
        )
        let expired = expired(grants)
        text.gauge(
            "refresh_worker_grants_expired",
            by: "client",
            samples: expired.map { PrometheusText.Sample(label: $0.client, count: $0.count) },
            help: "Connected grants without a valid access token; above 4096 an estimate."
        )
        text.gauge(
            "refresh_worker_oldest_expired_seconds",
            by: "client",
            samples: expired.map { PrometheusText.Sample(labels: [$0.client], value: $0.oldest.inSeconds) },
            help: "Longest time of a connected grant without a valid access token."
        )
    }

    /// The connected grants of one client id without a valid access token.
    private struct ExpiredGrants {
        let client: String
        let count: Int
        /// How long one of them has been without, at most.
        let oldest: Duration
    }

    /// The expired grants of each known client. The 50 clients with the most have samples of their own. The others are
    /// one sample with the label `other`.
    private func expired(_ grants: GrantStatistics) -> [ExpiredGrants] {
        let ids = Set(clients.map(\.id)).union(grants.expired.clients.keys)
        let entries = ids.sorted().map { expired(grants, ofClient: $0) }
        guard entries.count > Self.maximumClients else { return entries }
        let largest = entries.sorted { ($1.count, $0.client) < ($0.count, $1.client) }
        let rest = largest.dropFirst(Self.maximumClients)
        let other = ExpiredGrants(
            client: "other",
            count: rest.reduce(0) { $0 + $1.count },
            oldest: rest.map(\.oldest).max() ?? .zero
        )
        return largest.prefix(Self.maximumClients).sorted { $0.client < $1.client } + [other]
    }

    private func expired(_ grants: GrantStatistics, ofClient id: String) -> ExpiredGrants {
        guard let expired = grants.expired.clients[id] else {
            return ExpiredGrants(client: id, count: 0, oldest: .zero)
        }
        return ExpiredGrants(client: id, count: expired.count, oldest: max(.zero, at - expired.oldest))
    }

    private static func samples(_ counts: [String: Int]) -> [PrometheusText.Sample] {
        counts.sorted { $0.key < $1.key }.map { PrometheusText.Sample(label: $0.key, count: $0.value) }
    }
}

extension PrometheusText.Sample {
    fileprivate init(label: String, count: Int) {
        self.init(labels: [label], value: Double(count))
    }
}

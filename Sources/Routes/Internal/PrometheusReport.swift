import Base
import HTTPServer
import Scheduler
import Status
import Storage
import Telemetry

/// The content of one response to Prometheus.
///
/// Each metric is named once, with its help text. `make pages` writes the table of docs/prometheus.md from it.
struct PrometheusReport {
    /// The greatest number of client ids with samples of their own: each sample costs Prometheus memory for ever.
    private static let maximumClients = 50

    var at: Timestamp
    var version = ""
    var counters: LifetimeCounters
    var droppedLines = 0
    var inFlight = 0
    /// The number of grants in memory that are not due yet.
    var waiting = 0
    /// `nil` if the database cannot be read.
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
        let usage = ProcessUsage.current
        text.gauge(
            "refresh_worker_build_info",
            by: "version",
            samples: [([version], 1)],
            help: "Always 1; the label is the version of the program."
        )
        writeCounters(into: &text)
        writeVerdict(into: &text)
        if let grants { write(grants, into: &text) }
        text.gauge(
            "refresh_worker_refreshes_in_flight",
            Double(inFlight),
            "Refreshes begun whose result is not stored yet."
        )
        writeClients(into: &text)
        text.histogram(
            "refresh_worker_commit_duration_seconds",
            commits,
            "Time that the database took to store a batch of results."
        )
        text.gauge(
            "refresh_worker_notices_waiting",
            notices.map { Double($0.count) },
            "Users whose notices wait for delivery, at most \(PendingNotices.limit); left out without a backend to notify."
        )
        text.gauge(
            "refresh_worker_oldest_notice_seconds",
            notices.map { max(.zero, at - ($0.oldest ?? at)).inSeconds },
            "Time for which the oldest notice waits, 0 if none does."
        )
        text.gauge(
            "refresh_worker_store_up",
            grants == nil ? 0 : 1,
            "1 if the database could be read for this answer."
        )
        text.gauge(
            "refresh_worker_internal_certificate_expiry_timestamp_seconds",
            certificateExpiresAt.map { Double($0.milliseconds) / 1000 },
            "Time at which the internal listener's certificate expires, in seconds since 1970; left out without TLS."
        )
        text.gauge(
            "process_start_time_seconds",
            Double(counters.startedAt.milliseconds) / 1000,
            "Time at which the worker started, in seconds since 1970."
        )
        text.counter(
            "process_cpu_seconds_total",
            samples: [([], usage.cpuTime.inSeconds)],
            help: "Time that the process has spent on processors."
        )
        text.gauge(
            "process_resident_memory_bytes",
            usage.residentBytes.map { Double($0) },
            "Resident memory of the process."
        )
        text.gauge(
            "process_open_fds",
            usage.openDescriptors.map { Double($0) },
            "File descriptors that are open."
        )
        return text
    }

    private func writeCounters(into text: inout PrometheusText) {
        let counts = counters.counts
        // Every outcome is present from the start, so that a rate can be computed from its first occurrence.
        text.counter(
            "refresh_worker_refreshes_total",
            by: "outcome",
            samples: RefreshOutcome.allCases.map { ([$0.rawValue], Double(counts.refreshes[$0, default: 0])) },
            help: "Tries to refresh a grant."
        )
        text.histogram(
            "refresh_worker_refresh_duration_seconds",
            counts.refreshDuration,
            "Time from sending a refresh to the end of its answer."
        )
        text.counter(
            "refresh_worker_vends_total",
            by: "outcome",
            samples: Self.samples(counts.vends),
            help: "Requests for an access token by services, with the outcome of the audit."
        )
        text.histogram(
            "refresh_worker_vend_duration_seconds",
            counts.vendDuration,
            "Time from a request for an access token to its answer, with its wait for a refresh."
        )
        text.counter(
            "refresh_worker_http_requests_total",
            by: "route",
            "status",
            samples: counts.requests.sorted { $0.key < $1.key }.map {
                ([$0.key.route, $0.key.statusClass], Double($0.value))
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
            samples: [([], Double(droppedLines))],
            help: "Lines of the metrics log that were lost."
        )
        // Every kind is present from the start, so that an alerting rule finds a series.
        text.counter(
            "refresh_worker_alarms_total",
            by: "kind",
            samples: AlarmKind.allCases.map { ([$0.rawValue], Double(counts.alarms[$0, default: 0])) },
            help: "Alarms raised, as the metrics log has them."
        )
    }

    private func writeVerdict(into text: inout PrometheusText) {
        let counts = Dictionary(grouping: findings ?? []) { [$0.kind, $0.severity.rawValue] }
        text.gauge(
            "refresh_worker_concerns",
            by: "kind",
            "severity",
            samples: counts.sorted { $0.key[0] < $1.key[0] }.map { ($0.key, Double($0.value.count)) },
            help: """
                Concerns of the verdict, alarms among them: `kind` is a section of the runbook, `severity` is `now`, `soon` \
                or `tomorrow`.
                """
        )
        text.gauge(
            "refresh_worker_well",
            findings.map { $0.isEmpty ? 1 : 0 },
            "1 if the verdict is ok, 0 if there is a concern; left out before the first verdict."
        )
    }

    private func writeClients(into text: inout PrometheusText) {
        text.gauge(
            "refresh_worker_breaker_state",
            by: "client",
            "state",
            samples: clients.flatMap { client in
                ["closed", "open", "probing"].map { ([client.id, $0], $0 == client.breaker.name ? 1 : 0) }
            },
            help: "1 for the state of the client's breaker, 0 for the others."
        )
        text.gauge(
            "refresh_worker_pacer_ceiling_per_second",
            by: "client",
            samples: clients.map { ([$0.id], $0.ceiling) },
            help: "Refreshes a second that are allowed for the client now."
        )
    }

    private func write(_ grants: GrantStatistics, into text: inout PrometheusText) {
        text.gauge(
            "refresh_worker_grants",
            by: "state",
            samples: GrantState.allCases.map { ([$0.rawValue], Double(grants.byState[$0, default: 0])) },
            help: "Grants stored."
        )
        text.gauge(
            "refresh_worker_grants_due",
            Double(waiting + grants.due),
            "Grants that are due or soon will be, as far as the worker looks ahead."
        )
        text.gauge("refresh_worker_grants_overdue", Double(grants.due), "Grants whose due time has passed.")
        text.gauge(
            "refresh_worker_oldest_overdue_seconds",
            (grants.lateness(at: at) ?? .zero).inSeconds,
            "Time by which the most overdue grant is overdue, 0 if none is."
        )
        let expired = expired(grants)
        text.gauge(
            "refresh_worker_grants_expired",
            by: "client",
            samples: expired.map { ([$0.client], Double($0.count)) },
            help: "Connected grants without a valid access token; above 4096 an estimate."
        )
        text.gauge(
            "refresh_worker_oldest_expired_seconds",
            by: "client",
            samples: expired.map { ([$0.client], $0.oldest.inSeconds) },
            help: "Longest time of a connected grant without a valid access token."
        )
    }

    /// The connected grants without a valid access token, of each client id that has a health or such grants.
    ///
    /// All but the first clients are combined into one, with the label `other`.
    private func expired(_ grants: GrantStatistics) -> [(client: String, count: Int, oldest: Duration)] {
        let entries = Set(clients.map(\.id)).union(grants.expired.clients.keys).sorted().map { id in
            let expired = grants.expired.clients[id]
            return (client: id, count: expired?.count ?? 0, oldest: expired.map { max(.zero, at - $0.oldest) } ?? .zero)
        }
        guard entries.count > Self.maximumClients else { return entries }
        let largest = entries.sorted { ($1.count, $0.client) < ($0.count, $1.client) }
        let rest = largest.dropFirst(Self.maximumClients)
        let other = ("other", rest.reduce(0) { $0 + $1.count }, rest.map(\.oldest).max() ?? .zero)
        return largest.prefix(Self.maximumClients).sorted { $0.client < $1.client } + [other]
    }

    private static func samples(_ counts: [String: Int]) -> [PrometheusText.Sample] {
        counts.sorted { $0.key < $1.key }.map { ([$0.key], Double($0.value)) }
    }
}

extension MonitoringHandler {
    /// Returns the metrics in Prometheus' text format.
    func prometheus() async -> ServerResponse {
        let clients = await engine.clientStatuses
        let fresh: StatusSnapshot?
        do {
            fresh = try await lastSnapshot.value()
        } catch {
            // The response shows it: without grants, `refresh_worker_store_up` is 0.
            fresh = nil
        }
        let process = await processStatus()
        let latest = await latestSnapshot()
        let report = PrometheusReport(
            at: time.now,
            version: version,
            counters: counters.lifetime,
            droppedLines: metrics.droppedLines,
            inFlight: await engine.inFlight,
            waiting: await engine.waiting,
            grants: fresh?.countedGrants,
            clients: clients,
            commits: await engine.commitDurations,
            notices: fresh?.notices,
            findings: findings(of: process, latest),
            certificateExpiresAt: certificateExpiry()
        )
        return ServerResponse(headers: [("Content-Type", PrometheusText.contentType)], body: report.text.bytes)
    }
}

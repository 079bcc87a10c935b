internal import Base
internal import Scheduler
internal import Storage
internal import Telemetry

/// The worker's metrics at one instant, for Prometheus and for OpenTelemetry.
///
/// Each metric is named once, with its unit and help text. `make pages` writes the tables of docs/prometheus.md and
/// docs/opentelemetry.md from it.
struct WorkerMetrics {
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

    var list: MetricList {
        var list = MetricList()
        list.gauge(
            "refresh_worker.build_info",
            by: "version",
            samples: [Metric.Sample(labels: [version], value: 1)],
            help: "Always 1; the label is the version of the program."
        )
        addCounters(to: &list)
        addVerdict(to: &list)
        if let grants { addGrants(grants, to: &list) }
        list.add(
            Metric(
                name: "refresh_worker.refreshes_in_flight",
                unit: .count(of: "refresh"),
                kind: .amount,
                help: "Refreshes begun whose result is not stored yet.",
                values: .samples([Metric.Sample(value: Double(inFlight))])
            )
        )
        addClients(to: &list)
        list.histogram(
            "refresh_worker.commit.duration",
            of: commits,
            help: "Time that the database took to store a batch of results."
        )
        addNotices(to: &list)
        list.gauge(
            "refresh_worker.store.up",
            value: isStoreRead ? 1 : 0,
            help: "1 if the database could be read for this answer."
        )
        list.gauge(
            "refresh_worker.internal_certificate.expiry_timestamp",
            in: .seconds,
            value: certificateExpiresAt.map { Double($0.milliseconds) / 1000 },
            help:
                "Time at which the internal listener's certificate expires, in seconds since 1970; left out without TLS."
        )
        addProcess(to: &list)
        return list
    }

    private func addNotices(to list: inout MetricList) {
        list.gauge(
            "refresh_worker.notices_waiting",
            in: .count(of: "user"),
            value: notices.map { Double($0.count) },
            help:
                "Users whose notices wait for delivery, at most \(PendingNotices.limit); left out without a backend to notify."
        )
        list.gauge(
            "refresh_worker.oldest_notice",
            in: .seconds,
            value: ageOfOldestNotice?.inSeconds,
            help: "Time for which the oldest notice waits, 0 if none does."
        )
    }

    private var ageOfOldestNotice: Duration? {
        guard let notices else { return nil }
        guard let oldest = notices.oldest else { return .zero }
        return max(.zero, at - oldest)
    }

    private func addProcess(to list: inout MetricList) {
        let usage = ProcessUsage.current
        list.gauge(
            "process.start_time",
            in: .seconds,
            value: Double(startedAt.milliseconds) / 1000,
            help: "Time at which the worker started, in seconds since 1970."
        )
        // The names of OpenTelemetry's conventions for processes
        // (https://opentelemetry.io/docs/specs/semconv/system/process-metrics).
        list.add(
            Metric(
                name: "process.cpu.time",
                usualPrometheusName: "process_cpu_seconds_total",
                unit: .seconds,
                kind: .counter,
                help: "Time that the process has spent on processors.",
                values: .samples([Metric.Sample(value: usage.cpuTime.inSeconds)])
            )
        )
        list.add(
            Metric(
                name: "process.memory.usage",
                usualPrometheusName: "process_resident_memory_bytes",
                unit: .bytes,
                kind: .amount,
                help: "Resident memory of the process.",
                values: .samples(Self.samples(usage.residentBytes))
            )
        )
        list.add(
            Metric(
                name: "process.unix.file_descriptor.count",
                usualPrometheusName: "process_open_fds",
                unit: .count(of: "file_descriptor"),
                kind: .amount,
                help: "File descriptors that are open.",
                values: .samples(Self.samples(usage.openDescriptors))
            )
        )
    }

    private func addCounters(to list: inout MetricList) {
        // Every outcome is present from the start, so that a rate can be computed from its first occurrence.
        list.counter(
            "refresh_worker.refreshes",
            in: .count(of: "refresh"),
            by: "outcome",
            samples: RefreshOutcome.allCases.map { outcome in
                Metric.Sample(label: outcome.rawValue, count: counts.refreshes[outcome, default: 0])
            },
            help: "Tries to refresh a grant."
        )
        list.histogram(
            "refresh_worker.refresh.duration",
            of: counts.refreshDuration,
            help: "Time from sending a refresh to the end of its answer."
        )
        list.counter(
            "refresh_worker.vends",
            in: .count(of: "request"),
            by: "outcome",
            samples: Self.samples(counts.vends),
            help: "Requests for an access token by services, with the outcome of the audit."
        )
        list.histogram(
            "refresh_worker.vend.duration",
            of: counts.vendDuration,
            help: "Time from a request for an access token to its answer, with its wait for a refresh."
        )
        list.counter(
            "refresh_worker.http.requests",
            in: .count(of: "request"),
            by: "route",
            "status",
            samples: counts.requests.sorted { $0.key < $1.key }.map { request, count in
                Metric.Sample(labels: [request.route, request.statusClass], value: Double(count))
            },
            help: "Requests answered, with the class of the status."
        )
        list.counter(
            "refresh_worker.notices",
            in: .count(of: "notice"),
            by: "outcome",
            samples: Self.samples(counts.notices),
            help: "Tries to deliver a notice to the backend."
        )
        list.counter(
            "refresh_worker.security_events",
            in: .count(of: "event"),
            by: "type",
            samples: Self.samples(counts.securityEvents),
            help: "Security events received from Google."
        )
        list.counter(
            "refresh_worker.dropped_lines",
            in: .count(of: "line"),
            samples: [Metric.Sample(value: Double(droppedLines))],
            help: "Lines of the metrics log that were lost."
        )
        // Every kind is present from the start, so that an alerting rule finds a series.
        list.counter(
            "refresh_worker.alarms",
            in: .count(of: "alarm"),
            by: "kind",
            samples: AlarmKind.allCases.map { kind in
                Metric.Sample(label: kind.rawValue, count: counts.alarms[kind, default: 0])
            },
            help: "Alarms raised, as the metrics log has them."
        )
        list.counter(
            "refresh_worker.telemetry.dropped",
            in: .count(of: "item"),
            by: "signal",
            "reason",
            samples: counts.droppedTelemetry.sorted { $0.key < $1.key }.map { drop, count in
                Metric.Sample(labels: [drop.signal.rawValue, drop.reason.rawValue], value: Double(count))
            },
            help: """
                Data points (`signal` is `metrics`) and spans (`traces`) that did not get to the collector of \
                OpenTelemetry: `overflow`, `refused` or `failed`.
                """
        )
    }

    private func addVerdict(to list: inout MetricList) {
        let byKind = Dictionary(grouping: findings ?? []) { [$0.kind, $0.severity.rawValue] }
        list.gauge(
            "refresh_worker.concerns",
            in: .count(of: "concern"),
            by: "kind",
            "severity",
            samples: byKind.sorted { $0.key[0] < $1.key[0] }.map { labels, findings in
                Metric.Sample(labels: labels, value: Double(findings.count))
            },
            help: """
                Concerns of the verdict, alarms among them: `kind` is a section of the runbook, `severity` is `now`, `soon` \
                or `tomorrow`.
                """
        )
        list.gauge(
            "refresh_worker.well",
            value: findings.map { $0.isEmpty ? 1 : 0 },
            help: "1 if the verdict is ok, 0 if there is a concern; left out before the first verdict."
        )
    }

    private func addClients(to list: inout MetricList) {
        list.gauge(
            "refresh_worker.breaker.state",
            by: "client",
            "state",
            samples: clients.flatMap { client in
                ["closed", "open", "probing"].map { state in
                    Metric.Sample(labels: [client.id, state], value: state == client.breaker.name ? 1 : 0)
                }
            },
            help: "1 for the state of the client's breaker, 0 for the others."
        )
        list.gauge(
            "refresh_worker.pacer.ceiling",
            in: .perSecond(of: "refresh"),
            by: "client",
            samples: clients.map { Metric.Sample(labels: [$0.id], value: $0.ceiling) },
            help: "Refreshes a second that are allowed for the client now."
        )
    }

    private func addGrants(_ grants: GrantStatistics, to list: inout MetricList) {
        list.gauge(
            "refresh_worker.grants",
            in: .count(of: "grant"),
            by: "state",
            samples: GrantState.allCases.map { state in
                Metric.Sample(label: state.rawValue, count: grants.byState[state, default: 0])
            },
            help: "Grants stored."
        )
        list.gauge(
            "refresh_worker.grants_due",
            in: .count(of: "grant"),
            value: Double(waiting + grants.due),
            help: "Grants that are due or soon will be, as far as the worker looks ahead."
        )
        list.gauge(
            "refresh_worker.grants_overdue",
            in: .count(of: "grant"),
            value: Double(grants.due),
            help: "Grants whose due time has passed."
        )
        list.gauge(
            "refresh_worker.oldest_overdue",
            in: .seconds,
            value: (grants.lateness(at: at) ?? .zero).inSeconds,
            help: "Time by which the most overdue grant is overdue, 0 if none is."
        )
        let expired = expired(grants)
        list.gauge(
            "refresh_worker.grants_expired",
            in: .count(of: "grant"),
            by: "client",
            samples: expired.map { Metric.Sample(label: $0.client, count: $0.count) },
            help: "Connected grants without a valid access token; above 4096 an estimate."
        )
        list.gauge(
            "refresh_worker.oldest_expired",
            in: .seconds,
            by: "client",
            samples: expired.map { Metric.Sample(labels: [$0.client], value: $0.oldest.inSeconds) },
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

    /// Returns the sample of a metric without labels, or none without a value.
    private static func samples(_ value: Int?) -> [Metric.Sample] {
        guard let value else { return [] }
        return [Metric.Sample(value: Double(value))]
    }

    private static func samples(_ counts: [String: Int]) -> [Metric.Sample] {
        counts.sorted { $0.key < $1.key }.map { Metric.Sample(label: $0.key, count: $0.value) }
    }
}

extension Metric.Sample {
    fileprivate init(label: String, count: Int) {
        self.init(labels: [label], value: Double(count))
    }
}

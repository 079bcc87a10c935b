import TestSupport
import Testing

@testable import Base
@testable import Routes
@testable import Scheduler
@testable import Status
@testable import Storage
@testable import Telemetry

@Suite("The metrics for Prometheus")
struct PrometheusTests {
    static func report(_ counts: LifetimeCounts = LifetimeCounts()) -> WorkerMetrics {
        let now = ManualTime().now
        return WorkerMetrics(at: now, startedAt: now, counts: counts, droppedLines: 3, inFlight: 2)
    }

    private static func client(_ id: String, _ breaker: Breaker.State? = nil, ceiling: Double) -> ClientStatus {
        var client = ClientStatus(id: id)
        client.breaker = breaker ?? client.breaker
        client.ceiling = ceiling
        return client
    }

    /// A report in which every family has a sample.
    static var full: WorkerMetrics {
        let counters = EventCounters(time: ManualTime())
        counters.record([
            CountedRefresh(outcome: .retrying, lateness: .milliseconds(1_200), latency: .milliseconds(80))
        ])
        counters.recordVend(outcome: "served", duration: .milliseconds(1))
        counters.recordVend(outcome: "served", duration: .milliseconds(40))
        counters.recordVend(outcome: "not_found", duration: .seconds(60))
        counters.recordRequest(route: "/v1/grants/{user_id}/token", status: 200)
        counters.recordRequest(route: "/v1/grants/{user_id}/token", status: 201)
        counters.recordRequest(route: "/metrics", status: 503)
        counters.recordNotice(outcome: "delivered")
        counters.recordSecurityEvent(kind: "token-revoked")
        counters.recordAlarm(.clientFault)
        counters.recordDropped(7, of: .traces, because: .overflow)
        var report = report(counters.lifetime)
        var snapshot = StatusSnapshot(at: report.at)
        snapshot.grants.byState = [.active: 5]
        snapshot.grants.due = 1
        snapshot.grants.oldestDueAt = report.at - .milliseconds(1_500)
        snapshot.grants.expired.add(4, oldest: report.at - .seconds(90), client: "1-a.apps")
        let open = Breaker.State.open(
            reason: .endpointFailing,
            since: BootInstant(milliseconds: 0),
            nextProbe: BootInstant(milliseconds: 0),
            probes: 0
        )
        snapshot.clients = [client("1-a.apps", open, ceiling: 12.5), client("2-b.apps", open, ceiling: 1)]
        report.waiting = 6
        report.isStoreRead = true
        report.grants = snapshot.grants
        report.clients = snapshot.clients
        report.version = "1.2.3"
        report.commits.record(.milliseconds(7))
        report.notices = PendingNotices(count: 3, oldest: report.at - .seconds(90))
        report.findings = snapshot.findings
        report.certificateExpiresAt = Timestamp(secondsSince1970: 1_801_000_000)
        return report
    }

    static func lines(_ report: WorkerMetrics) -> [String] {
        PrometheusText(report.list.metrics).text.split(separator: "\n").map(String.init)
    }

    @Test("have help and type before their samples")
    func order() {
        let metrics = Self.full.list.metrics
        let lines = Self.lines(Self.full)
        let types = lines.filter { $0.hasPrefix("# TYPE ") }
        #expect(
            types == metrics.map { "# TYPE \($0.prometheusName) \($0.kind.prometheusType)" },
            "each family has a sample"
        )
        let helps = lines.filter { $0.hasPrefix("# HELP ") }
        #expect(helps == metrics.map { "# HELP \($0.prometheusName) \($0.help)" })
        var current = ""
        for line in lines {
            if line.hasPrefix("# HELP ") { current = String(line.split(separator: " ")[2]) }
            if !line.hasPrefix("#") { #expect(line.hasPrefix(current), "\(line)") }
        }
    }

    @Test(
        "have these samples",
        arguments: [
            #"refresh_worker_refreshes_total{outcome="retrying"} 1"#,
            #"refresh_worker_refreshes_total{outcome="refreshed"} 0"#,
            #"refresh_worker_refresh_duration_seconds_bucket{le="0.05"} 0"#,
            #"refresh_worker_refresh_duration_seconds_bucket{le="0.1"} 1"#,
            #"refresh_worker_vends_total{outcome="served"} 2"#, #"refresh_worker_vends_total{outcome="not_found"} 1"#,
            #"refresh_worker_vend_duration_seconds_bucket{le="0.001"} 1"#,
            #"refresh_worker_vend_duration_seconds_bucket{le="0.05"} 2"#,
            #"refresh_worker_vend_duration_seconds_bucket{le="30"} 2"#,
            #"refresh_worker_vend_duration_seconds_bucket{le="+Inf"} 3"#,
            "refresh_worker_vend_duration_seconds_sum 60.041",
            "refresh_worker_vend_duration_seconds_count 3",
            #"refresh_worker_http_requests_total{route="/v1/grants/{user_id}/token",status="2xx"} 2"#,
            #"refresh_worker_http_requests_total{route="/metrics",status="5xx"} 1"#,
            #"refresh_worker_notices_total{outcome="delivered"} 1"#,
            #"refresh_worker_security_events_total{type="token-revoked"} 1"#, "refresh_worker_dropped_lines_total 3",
            #"refresh_worker_grants{state="active"} 5"#, #"refresh_worker_grants{state="disconnected"} 0"#,
            #"refresh_worker_alarms_total{kind="client_fault"} 1"#,
            #"refresh_worker_alarms_total{kind="store_failing"} 0"#,
            #"refresh_worker_telemetry_dropped_total{signal="traces",reason="overflow"} 7"#,
            #"refresh_worker_concerns{kind="breaker_open",severity="now"} 1"#,
            #"refresh_worker_concerns{kind="breaker_open",severity="soon"} 1"#,
            #"refresh_worker_concerns{kind="grants_expired",severity="now"} 1"#, "refresh_worker_well 0",
            #"refresh_worker_build_info{version="1.2.3"} 1"#,
            #"refresh_worker_commit_duration_seconds_bucket{le="0.01"} 1"#, "refresh_worker_notices_waiting 3",
            "refresh_worker_oldest_notice_seconds 90",
            #"refresh_worker_grants_expired{client="1-a.apps"} 4"#,
            #"refresh_worker_oldest_expired_seconds{client="1-a.apps"} 90"#,
            "refresh_worker_grants_due 7", "refresh_worker_grants_overdue 1",
            "refresh_worker_oldest_overdue_seconds 1.5",
            "refresh_worker_refreshes_in_flight 2",
            #"refresh_worker_breaker_state{client="1-a.apps",state="closed"} 0"#,
            #"refresh_worker_breaker_state{client="1-a.apps",state="open"} 1"#,
            #"refresh_worker_pacer_ceiling_per_second{client="1-a.apps"} 12.5"#, "refresh_worker_store_up 1",
            "refresh_worker_internal_certificate_expiry_timestamp_seconds 1801000000",
            "process_start_time_seconds 1800000000",
        ]
    )
    func samples(line: String) {
        #expect(Self.lines(Self.full).contains(line))
    }

    @Test("combine the client ids after the fifty with the most expired grants")
    func bounded() {
        var report = Self.report()
        var grants = StatusSnapshot(at: report.at).grants
        for number in 1...60 {
            grants.expired.add(number, oldest: report.at - .seconds(number), client: "c\(number)")
        }
        report.grants = grants
        let lines = Self.lines(report)
        #expect(lines.count { $0.hasPrefix("refresh_worker_grants_expired{") } == 51)
        #expect(lines.contains(#"refresh_worker_grants_expired{client="c60"} 60"#))
        #expect(lines.contains(#"refresh_worker_grants_expired{client="other"} 55"#))
        #expect(lines.contains(#"refresh_worker_oldest_expired_seconds{client="other"} 10"#))
    }

    @Test("omit the samples from the database if it cannot be read")
    func withoutStore() {
        let lines = Self.lines(Self.report())
        #expect(lines.contains("refresh_worker_store_up 0"))
        #expect(!lines.contains { $0.contains("refresh_worker_grants") || $0.contains("overdue") })
    }

    @Test("omit the expiry of the certificate without TLS")
    func withoutTLS() {
        #expect(!Self.lines(Self.report()).contains { $0.contains("internal_certificate") })
    }

    @Test(
        "escape the values of labels",
        arguments: [(#"a"b"#, #"a\"b"#), (#"a\b"#, #"a\\b"#), ("a\nb", #"a\nb"#), ("é{}", "é{}")]
    )
    func escapes(value: String, written: String) {
        var report = Self.report()
        report.clients = [Self.client(value, ceiling: 1)]
        let lines = Self.lines(report)
        #expect(lines.contains("refresh_worker_pacer_ceiling_per_second{client=\"\(written)\"} 1"))
    }

    @Test(
        "format numbers that are not finite",
        arguments: [(Double.infinity, "+Inf"), (-.infinity, "-Inf"), (.nan, "NaN")]
    )
    func numbers(value: Double, written: String) {
        var report = Self.report()
        report.clients = [Self.client("c", ceiling: value)]
        let lines = Self.lines(report)
        #expect(lines.contains("refresh_worker_pacer_ceiling_per_second{client=\"c\"} \(written)"))
    }

    @Test("include the resources of the process")
    func usage() throws {
        let usage = ProcessUsage.current
        #expect(usage.cpuTime > .zero)
        #expect(try #require(usage.residentBytes) > 1 << 20)
        #expect(try #require(usage.openDescriptors) >= 3)
    }
}

@Suite("The page of the metrics for Prometheus")
struct PrometheusPageTests {
    @Test("has a row of each metric, as the code makes it")
    func isCurrent() throws {
        let rows = PrometheusTests.full.list.metrics.map { metric in
            [
                "`\(metric.prometheusName)`", metric.kind.prometheusType,
                metric.labels.map { "`\($0)`" }.joined(separator: ", "),
                metric.help,
            ]
        }
        let columns = ["metric", "type", "labels", "meaning"]
        let table = GeneratedPage.Table("Metrics", columns: columns, rows: rows)
        let page = try GeneratedPage("prometheus.md", writing: [table])
        #expect(page.tables.first == table, "run: make pages")
    }
}

@Suite("The page of the metrics for OpenTelemetry")
struct OpenTelemetryPageTests {
    @Test("has a row of each metric, as the code makes it")
    func isCurrent() throws {
        let rows = PrometheusTests.full.list.metrics.map { metric in
            [
                "`\(metric.prometheusName)`", "`\(metric.name)`",
                metric.unit.symbol.isEmpty ? "" : "`\(metric.unit.symbol)`", Self.type(of: metric),
            ]
        }
        let table = GeneratedPage.Table("Names", columns: ["for Prometheus", "name", "unit", "type"], rows: rows)
        let page = try GeneratedPage("opentelemetry.md", writing: [table])
        #expect(page.tables.contains(table), "run: make pages")
    }

    /// The type as OTLP has it.
    private static func type(of metric: Metric) -> String {
        switch metric.kind {
        case .counter: "sum, monotonic"
        case .amount: "sum"
        case .gauge: "gauge"
        case .histogram: "histogram"
        }
    }
}

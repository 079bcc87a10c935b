import Foundation
import Testing

@testable import Base
@testable import Telemetry

@Suite("The metrics for Prometheus")
struct PrometheusTests {
    static func report(
        _ counters: LifetimeCounters = IntervalCounters(time: ManualTime()).lifetime,
        grants: PrometheusReport.Grants? = nil,
        clients: [PrometheusReport.Client] = [],
        alarms: [CurrentAlarm] = [],
        verdict: PrometheusReport.Verdict? = nil,
        certificateExpiresAt: Timestamp? = nil,
        usage: ProcessUsage = .current
    ) -> PrometheusReport {
        PrometheusReport(
            counts: counters.counts,
            startedAt: counters.startedAt,
            droppedLines: 3,
            inFlight: 2,
            grants: grants,
            clients: clients,
            alarms: alarms,
            verdict: verdict,
            certificateExpiresAt: certificateExpiresAt,
            usage: usage
        )
    }

    /// A report in which every family has a sample.
    static var full: PrometheusReport {
        let counters = IntervalCounters(time: ManualTime())
        counters.record([MetricsSamples.full])
        counters.lifetime.recordVend(outcome: "served", duration: .milliseconds(1))
        counters.lifetime.recordVend(outcome: "served", duration: .milliseconds(40))
        counters.lifetime.recordVend(outcome: "not_found", duration: .seconds(60))
        counters.lifetime.recordRequest(route: "/v1/grants/{user_id}/token", status: 200)
        counters.lifetime.recordRequest(route: "/v1/grants/{user_id}/token", status: 201)
        counters.lifetime.recordRequest(route: "/metrics", status: 503)
        counters.lifetime.recordNotice(outcome: "delivered")
        counters.lifetime.recordSecurityEvent(kind: "token-revoked")
        counters.lifetime.recordAlarm(.clientFault)
        return report(
            counters.lifetime,
            grants: (
                byState: [(state: "active", count: 5), (state: "disconnected", count: 0)],
                due: 7,
                overdue: 1,
                oldestOverdue: .milliseconds(1_500),
                expired: [(client: "1-a.apps", count: 4, oldest: .seconds(90))]
            ),
            clients: [(id: "1-a.apps", breaker: .open, ceiling: 12.5)],
            alarms: [
                CurrentAlarm(
                    kind: .clientFault,
                    client: "1-a.apps",
                    text: "",
                    since: ManualTime().now,
                    until: ManualTime().now,
                    count: 1
                )
            ],
            verdict: (isWell: false, concerns: [(kind: "breaker_open", count: 1)]),
            certificateExpiresAt: Timestamp(secondsSince1970: 1_801_000_000)
        )
    }

    static func lines(_ report: PrometheusReport) -> [String] {
        report.text.text.split(separator: "\n").map(String.init)
    }

    @Test("match the document, row by row")
    func document() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let text = String(decoding: try Data(contentsOf: root.appending(path: "docs/prometheus.md")), as: UTF8.self)
        let rows = text.split(separator: "\n").map(String.init).filter { $0.hasPrefix("| `") }
        let expected = Self.full.text.metrics.map { metric in
            let labels = metric.labels.map { "`\($0)`" }.joined(separator: ", ")
            return "| `\(metric.name)` | \(metric.kind.rawValue) | \(labels) | \(metric.help) |"
        }
        #expect(rows == expected, "\(expected.joined(separator: "\n"))")
    }

    @Test("have help and type before their samples")
    func order() {
        let text = Self.full.text
        let lines = text.text.split(separator: "\n").map(String.init)
        let types = lines.filter { $0.hasPrefix("# TYPE ") }
        #expect(types == text.metrics.map { "# TYPE \($0.name) \($0.kind.rawValue)" })
        let helps = lines.filter { $0.hasPrefix("# HELP ") }
        #expect(helps == text.metrics.map { "# HELP \($0.name) \($0.help)" })
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
            #"refresh_worker_alarms{kind="client_fault"} 1"#, #"refresh_worker_alarms{kind="store_failing"} 0"#,
            #"refresh_worker_concerns{kind="breaker_open"} 1"#, "refresh_worker_well 0",
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
        let expired = (1...60).map { (client: "c\($0)", count: $0, oldest: Duration.seconds(Int64($0))) }
        let grants: PrometheusReport.Grants = ([], due: 0, overdue: 0, oldestOverdue: .zero, expired: expired)
        let lines = Self.lines(Self.report(grants: grants))
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
        let client = (id: value, breaker: PrometheusReport.Breaker.closed, ceiling: 1.0)
        let lines = Self.lines(Self.report(clients: [client]))
        #expect(lines.contains("refresh_worker_pacer_ceiling_per_second{client=\"\(written)\"} 1"))
    }

    @Test(
        "format numbers that are not finite",
        arguments: [(Double.infinity, "+Inf"), (-.infinity, "-Inf"), (.nan, "NaN")]
    )
    func numbers(value: Double, written: String) {
        let client = (id: "c", breaker: PrometheusReport.Breaker.closed, ceiling: value)
        let lines = Self.lines(Self.report(clients: [client]))
        #expect(lines.contains("refresh_worker_pacer_ceiling_per_second{client=\"c\"} \(written)"))
    }

    @Test("include the resources of the process")
    func usage() throws {
        let usage = ProcessUsage.current
        #expect(try #require(usage.residentBytes) > 1 << 20)
        #expect(try #require(usage.openDescriptors) >= 3)
    }
}

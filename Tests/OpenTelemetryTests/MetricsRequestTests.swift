import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import OpenTelemetry

@Suite("A request with metrics")
struct MetricsRequestTests {
    private let request = MetricsRequest(
        resource: Resource(
            serviceName: "tokens",
            given: [Attribute("deployment.environment.name", .text("test"))],
            version: "1.2.3",
            worker: "42-abc"
        ),
        scopeVersion: "1.2.3",
        startedAt: Timestamp(milliseconds: 1_800_000_000_000),
        at: Timestamp(milliseconds: 1_800_000_060_123)
    )

    private func json(_ build: (inout MetricList) -> Void) -> String {
        var list = MetricList()
        build(&list)
        return String(decoding: request.encode(list.metrics).body, as: UTF8.self)
    }

    /// What comes before and after the metrics.
    private static let head = """
        {"resourceMetrics":[{"resource":{"attributes":[\
        {"key":"service.name","value":{"stringValue":"tokens"}},\
        {"key":"deployment.environment.name","value":{"stringValue":"test"}},\
        {"key":"service.version","value":{"stringValue":"1.2.3"}},\
        {"key":"service.instance.id","value":{"stringValue":"42-abc"}}]},\
        "scopeMetrics":[{"scope":{"name":"refresh-worker","version":"1.2.3"},"metrics":[
        """
    private static let tail = "]}]}]}"

    @Test("has counters as monotonic cumulative sums, with 64-bit numbers as strings and enums as numbers")
    func counter() {
        let made = json { list in
            list.counter(
                "refresh_worker.vends",
                in: .count(of: "request"),
                by: "outcome",
                samples: [Metric.Sample(labels: ["served"], value: 7), Metric.Sample(labels: ["no_grant"], value: 1)],
                help: "Requests."
            )
        }
        let points = """
            {"attributes":[{"key":"outcome","value":{"stringValue":"served"}}],\
            "startTimeUnixNano":"1800000000000000000","timeUnixNano":"1800000060123000000","asInt":"7"},\
            {"attributes":[{"key":"outcome","value":{"stringValue":"no_grant"}}],\
            "startTimeUnixNano":"1800000000000000000","timeUnixNano":"1800000060123000000","asInt":"1"}
            """
        let metric = """
            {"name":"refresh_worker.vends","description":"Requests.","unit":"{request}",\
            "sum":{"aggregationTemporality":2,"isMonotonic":true,"dataPoints":[\(points)]}}
            """
        #expect(made == Self.head + metric + Self.tail)
    }

    @Test("has gauges without a start, and leaves out values that are no numbers")
    func gauge() {
        let made = json { list in
            list.gauge(
                "ceiling",
                in: .perSecond(of: "refresh"),
                samples: [Metric.Sample(value: 12.5), Metric.Sample(value: .infinity), Metric.Sample(value: .nan)],
                help: ""
            )
        }
        let metric = """
            {"name":"ceiling","description":"","unit":"{refresh}/s",\
            "gauge":{"dataPoints":[{"timeUnixNano":"1800000060123000000","asDouble":12.5}]}}
            """
        #expect(made == Self.head + metric + Self.tail)
    }

    @Test("has amounts as sums that are not monotonic")
    func amount() {
        let made = json { list in
            list.add(
                Metric(
                    name: "process.memory.usage",
                    unit: .bytes,
                    kind: .amount,
                    help: "",
                    values: .samples([Metric.Sample(value: 1_048_576)])
                )
            )
        }
        #expect(made.contains(#""unit":"By","sum":{"aggregationTemporality":2,"isMonotonic":false"#))
        #expect(made.contains(#""asInt":"1048576""#))
    }

    @Test("has the bounds of a histogram, and one bucket more than bounds")
    func histogram() {
        var durations = DurationBuckets()
        durations.record(.milliseconds(3))
        durations.record(.milliseconds(4))
        durations.record(.seconds(40))
        let made = json { $0.histogram("vend.duration", of: durations, help: "") }
        let metric = """
            {"name":"vend.duration","description":"","unit":"s",\
            "histogram":{"aggregationTemporality":2,"dataPoints":[\
            {"startTimeUnixNano":"1800000000000000000","timeUnixNano":"1800000060123000000","count":"3","sum":40.007,\
            "bucketCounts":["0","0","2","0","0","0","0","0","0","0","0","0","0","0","1"],\
            "explicitBounds":[0.001,0.002,0.005,0.01,0.025,0.05,0.1,0.25,0.5,1.0,2.5,5.0,10.0,30.0]}]}}
            """
        #expect(made == Self.head + metric + Self.tail)
    }

    @Test("leaves out a metric without values")
    func empty() {
        #expect(json { $0.gauge("well", value: nil, help: "") } == Self.head + Self.tail)
    }

    @Test("has at most a thousand data points of a metric, and counts the others")
    func bounded() {
        var list = MetricList()
        let samples = (1...1003).map { Metric.Sample(labels: ["\($0)"], value: 1) }
        list.gauge("breaker", by: "client", samples: samples, help: "")
        list.gauge("up", value: 1, help: "")
        let encoded = request.encode(list.metrics)
        #expect(encoded.items == 1001)
        #expect(encoded.dropped == 3)
        #expect(!String(decoding: encoded.body, as: UTF8.self).contains(#""1001""#))
    }

    @Test("shortens long values of attributes")
    func shortened() {
        let made = json { list in
            let label = String(repeating: "x", count: 300)
            list.gauge("up", by: "client", samples: [Metric.Sample(labels: [label], value: 1)], help: "")
        }
        #expect(made.contains(String(repeating: "x", count: 253) + "…"))
        #expect(!made.contains(String(repeating: "x", count: 254)))
    }

    @Test("never has a time before the start, although the clock was set back")
    func clockSetBack() {
        let start = Timestamp(milliseconds: 1_800_000_000_000)
        let request = MetricsRequest(
            resource: Resource(serviceName: nil, given: [], version: "1", worker: "w"),
            scopeVersion: "1",
            startedAt: start,
            at: start - .seconds(5)
        )
        var list = MetricList()
        list.gauge("up", value: 1, help: "")
        let made = String(decoding: request.encode(list.metrics).body, as: UTF8.self)
        #expect(made.contains(#""timeUnixNano":"1800000000000000000""#))
    }
}

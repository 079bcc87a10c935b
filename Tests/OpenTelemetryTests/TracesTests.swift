import TestSupport
import Testing

@testable import Base
@testable import HTTPClient
@testable import OpenTelemetry
@testable import Telemetry

@Suite("Spans", .timeLimit(.minutes(10)))
struct TracesTests {
    private let time = ManualTime()
    private let counters: EventCounters
    private let spans: SpanBuffer

    init() {
        counters = EventCounters(time: time)
        spans = SpanBuffer(counters: counters, time: time, random: SeededRandom(seed: 1))
    }

    private static func caller(flags: String = "01") -> TraceContext? {
        TraceContext(traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-\(flags)")
    }

    private func record(_ count: Int) {
        TraceContext.$current.withValue(Self.caller()) {
            for _ in 0..<count { spans.end(spans.begin("vend", .server), attributes: []) }
        }
    }

    private func exporter(to collector: FakeCollector) -> TracesExporter {
        let resource = Resource(serviceName: nil, given: [], version: "1", worker: "w")
        return TracesExporter(
            over: TelemetrySender(
                of: .traces,
                to: collector,
                counters: counters,
                diagnostics: DiagnosticLog(level: .error, time: time),
                time: time,
                random: SeededRandom(seed: 1)
            ),
            of: spans,
            request: TracesRequest(resource: resource, scopeVersion: "1"),
            time: time
        )
    }

    private func dropped(_ reason: TelemetryDrop.Reason) -> Int {
        counters.lifetime.droppedTelemetry[TelemetryDrop(signal: .traces, reason: reason)] ?? 0
    }

    @Test("begin only for callers who record their own")
    func sampling() {
        #expect(spans.begin("vend", .server) == nil)
        TraceContext.$current.withValue(Self.caller(flags: "00")) { #expect(spans.begin("vend", .server) == nil) }
        TraceContext.$current.withValue(Self.caller()) { #expect(spans.begin("vend", .server) != nil) }
    }

    @Test("are sent with hexadecimal ids, below the span of the caller and of each other")
    func encoded() async throws {
        let collector = FakeCollector(FakeCollector.ok)
        TraceContext.$current.withValue(Self.caller()) {
            let vend = spans.begin("vend", .server)
            time.advance(by: .milliseconds(5))
            TraceContext.$current.withValue(vend?.context) {
                let refresh = spans.begin("refresh", .client)
                time.advance(by: .milliseconds(80))
                spans.end(refresh, attributes: [], hasFailed: true)
            }
            spans.end(vend, attributes: [Span.Attribute("refresh_worker.outcome", "refreshed")])
        }
        await exporter(to: collector).export(within: .seconds(1))
        let ids = SeededRandom(seed: 1)
        let (vend, refresh) = (SpanID(random: ids).text, SpanID(random: ids).text)
        let expected = """
            {"resourceSpans":[{"resource":{"attributes":[\
            {"key":"service.name","value":{"stringValue":"refresh-worker"}},\
            {"key":"service.version","value":{"stringValue":"1"}},\
            {"key":"service.instance.id","value":{"stringValue":"w"}}]},\
            "scopeSpans":[{"scope":{"name":"refresh-worker","version":"1"},"spans":[\
            {"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"\(refresh)","parentSpanId":"\(vend)","flags":1,\
            "name":"refresh","kind":3,"startTimeUnixNano":"1800000000005000000","endTimeUnixNano":"1800000000085000000",\
            "status":{"code":2}},\
            {"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"\(vend)","parentSpanId":"00f067aa0ba902b7","flags":1,\
            "name":"vend","kind":2,"startTimeUnixNano":"1800000000000000000","endTimeUnixNano":"1800000000085000000",\
            "attributes":[{"key":"refresh_worker.outcome","value":{"stringValue":"refreshed"}}]}]}]}]}
            """
        #expect(collector.bodies == [expected])
    }

    @Test("are sent every five seconds, in batches, and nothing is sent without one")
    func batches() async {
        let collector = FakeCollector(FakeCollector.ok)
        let exporter = exporter(to: collector)
        let running = Task { await exporter.run() }
        await time.sleepers(atLeast: 1, for: .seconds(5))
        time.advance(by: .seconds(5))
        await time.sleepers(atLeast: 1, for: .seconds(5))
        #expect(collector.bodies.isEmpty)
        record(TracesExporter.batchSize + 1)
        time.advance(by: .seconds(5))
        await time.sleepers(atLeast: 1, for: .seconds(5))
        #expect(collector.bodies.count == 2)
        running.cancel()
        await running.value
    }

    @Test("beyond the buffer are dropped and counted")
    func overflow() {
        record(SpanBuffer.maximumSpans + 3)
        #expect(spans.take(atMost: .max).count == SpanBuffer.maximumSpans)
        #expect(dropped(.overflow) == 3)
    }

    @Test("of ten minutes without the collector are dropped and counted, and the next ones arrive")
    func outage() async {
        let collector = FakeCollector(FakeCollector.failure(.timeout))
        let exporter = exporter(to: collector)
        let running = Task { await exporter.run() }
        for _ in 1...600 {
            record(10)
            await time.sleepers(atLeast: 1)
            time.advance(by: .seconds(1))
        }
        collector.answer(FakeCollector.ok)
        for _ in 1...60 {
            await time.sleepers(atLeast: 1)
            time.advance(by: .seconds(1))
        }
        await time.sleepers(atLeast: 1)
        let arrived = collector.bodies.suffix(8).map { $0.count(of: #""name":"vend""#) }.max() ?? 0
        #expect(arrived > 0)
        #expect(dropped(.failed) + dropped(.overflow) <= 6000)
        #expect(dropped(.failed) > 2000, "each batch was given up after its time")
        #expect(spans.take(atMost: .max).isEmpty, "all that waited was sent")
        running.cancel()
        await running.value
    }
}

extension String {
    fileprivate func count(of part: String) -> Int { ranges(of: part).count }
}

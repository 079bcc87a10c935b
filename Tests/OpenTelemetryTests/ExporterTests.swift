import TestSupport
import Testing

@testable import Base
@testable import HTTPClient
@testable import OpenTelemetry
@testable import Telemetry

@Suite("The export of metrics", .timeLimit(.minutes(10)))
struct ExporterTests {
    private let time = ManualTime()
    private let counters: EventCounters

    init() {
        counters = EventCounters(time: time)
    }

    private func exporter(to collector: FakeCollector) -> MetricsExporter {
        MetricsExporter(
            over: TelemetrySender(
                of: .metrics,
                to: collector,
                counters: counters,
                diagnostics: DiagnosticLog(level: .error, time: time),
                time: time,
                random: SeededRandom(seed: 1)
            ),
            every: .seconds(60),
            resource: Resource(serviceName: nil, given: [], version: "1", worker: "w"),
            version: "1",
            startedAt: counters.startedAt,
            time: time
        )
    }

    /// A counter that shows what was counted since the start.
    private func collect() -> [Metric] {
        var list = MetricList()
        list.counter(
            "vends",
            in: .count(of: "request"),
            samples: [Metric.Sample(value: Double(counters.lifetime.vends["served"] ?? 0))],
            help: ""
        )
        return list.metrics
    }

    @Test("happens every minute, with everything since the start")
    func periodic() async throws {
        let collector = FakeCollector(FakeCollector.ok)
        let exporter = exporter(to: collector)
        let running = Task { await exporter.run { collect() } }
        for minute in 1...3 {
            counters.recordVend(outcome: "served", duration: .zero)
            await time.sleepers(atLeast: 1)
            #expect(collector.bodies.count == minute - 1)
            time.advance(by: .seconds(60))
            await time.sleepers(atLeast: 1)
            #expect(collector.bodies.last?.contains(#""asInt":"\#(minute)""#) == true)
        }
        running.cancel()
        await running.value
        #expect(collector.bodies.count == 3)
    }

    @Test(
        "of ten minutes without the collector keeps nothing, and the next one has all counts",
        arguments: [HTTPError.Kind.timeout, .connect, .receiveFailed]
    )
    func outage(kind: HTTPError.Kind) async throws {
        let collector = FakeCollector(FakeCollector.failure(kind))
        let exporter = exporter(to: collector)
        let running = Task { await exporter.run { collect() } }
        for _ in 1...600 {
            counters.recordVend(outcome: "served", duration: .zero)
            await time.sleepers(atLeast: 1)
            time.advance(by: .seconds(1))
        }
        await time.sleepers(atLeast: 1)
        let attempts = collector.bodies.count
        #expect(30...90 ~= attempts, "\(attempts) attempts in ten minutes")
        let failed = counters.lifetime.droppedTelemetry[TelemetryDrop(signal: .metrics, reason: .failed)]
        #expect(try #require(failed) >= 8, "one data point of each minute that has ended")

        collector.answer(FakeCollector.ok)
        while collector.bodies.count == attempts {
            await time.sleepers(atLeast: 1)
            time.advance(by: .seconds(1))
        }
        for _ in 1...70 {
            await time.sleepers(atLeast: 1)
            time.advance(by: .seconds(1))
        }
        #expect(collector.bodies.last?.contains(#""asInt":"600""#) == true)
        #expect(collector.bodies.count <= attempts + 3, "the requests of the outage were not kept")
        running.cancel()
        await running.value
    }
}

import Foundation
import TestSupport
import Testing

@testable import Base
@testable import Scheduler
@testable import Telemetry

@Suite("The metrics log")
struct MetricsLogTests {
    private let sink = MemorySink()
    private let log: MetricsLog

    init() {
        let time = ManualTime(now: Timestamp(milliseconds: 1_795_230_059_123))
        log = MetricsLog(sink: sink, worker: "host/1", time: time)
    }

    @Test("begins each line with time, event and worker")
    func common() {
        log.record(.breaker(client: "an-id", "probe"))
        let expected = """
            {"time":"2026-11-21T03:00:59.123Z","event":"breaker","worker":"host/1",\
            "client":"an-id","change":"probe","reason":""}
            """
        #expect(sink.lines.map(\.text) == [expected])
    }

    @Test("builds no line if there is none to write it to")
    func noSink() {
        let log = MetricsLog(sink: nil, worker: "host/1", time: ManualTime())
        var built = 0
        log.record("refresh", count: 3) { _, _ in built += 1 }
        #expect(built == 0)
        #expect(log.record(.breaker(client: "an-id", "probe")) == false)
    }

    @Test("writes the result of a run in the form on which scripts rely")
    func runOnce() throws {
        let event = try #require(MetricsSamples.all.first { $0.name == "run_once" })
        let line = event.resultLine(at: Timestamp(milliseconds: 1_795_230_059_123), worker: "host/1")
        let expected = """
            {"event":"run_once","due":28,"refreshed":1,"retrying":2,"held":3,"suspended":4,"reauth_required":5,\
            "disconnected":6,"skipped":7,"spilled":0,"lost":0,"duration_ms":8000,\
            "time":"2026-11-21T03:00:59.123Z","worker":"host/1"}
            """
        #expect(line.text == expected)
    }

    @Test("shows the counts of an interval")
    func summary() throws {
        log.record(MetricsSamples.summary(MetricsSamples.counts))
        let line = try #require(try parseLines((sink.lines.first?.text ?? "") + "\n").first)
        #expect(line["interval_ms"] as? Int == 10_000)
        #expect(line["retrying"] as? Int == 1)
        #expect(line["refreshed"] as? Int == 0)
        #expect(line["latency_p95_ms"] as? Int == 80)
        #expect(line["lateness_p95_ms"] as? Int == 1_200)
        #expect(line["oldest_overdue_ms"] as? Int == 3_000)
    }

    @Test("shortens and escapes external text")
    func answer() throws {
        var event = MetricsSamples.full
        event.answer = "<html>\n\u{1b}[2J" + String(repeating: "é", count: 5_000)
        event.reason = String(repeating: "r", count: 5_000)
        log.record(event)
        let text = try #require(sink.lines.first?.text)
        #expect(text.contains(#""answer":"<html>\n\u001b[2Jé"#))
        let line = try #require(try parseLines(text + "\n").first)
        #expect((line["answer"] as? String)?.utf8.count ?? 0 <= 256)
        #expect((line["reason"] as? String)?.utf8.count == 128)
    }

    @Test("keeps each line within the atomic write size of a pipe", arguments: ["x", "\u{1}"])
    func longest(character: String) {
        var event = MetricsSamples.full
        let long = String(repeating: character, count: 10_000)
        (event.verdict, event.reason, event.answer) = (long, long, long)
        log.record(event)
        #expect(sink.lines.count == 1)
        #expect(sink.lines.allSatisfy { $0.bytes.count < 4_096 })
    }
}

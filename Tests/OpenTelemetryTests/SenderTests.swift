import TestSupport
import Testing

@testable import Base
@testable import HTTPClient
@testable import OpenTelemetry
@testable import Telemetry

@Suite("A sender of telemetry", .timeLimit(.minutes(10)))
struct SenderTests {
    private let time = ManualTime()
    private let counters: EventCounters
    private let request = EncodedTelemetry(body: Array("{}".utf8), items: 3)

    init() {
        counters = EventCounters(time: time)
    }

    private func sender(to collector: FakeCollector) -> TelemetrySender {
        TelemetrySender(
            of: .metrics,
            to: collector,
            counters: counters,
            diagnostics: DiagnosticLog(level: .error, time: time),
            time: time,
            random: SeededRandom(seed: 1)
        )
    }

    private func dropped(_ reason: TelemetryDrop.Reason) -> Int {
        counters.lifetime.droppedTelemetry[TelemetryDrop(signal: .metrics, reason: reason)] ?? 0
    }

    @Test("sends once if the collector accepts")
    func accepted() async {
        let collector = FakeCollector(FakeCollector.ok)
        await sender(to: collector).send(request, within: .seconds(60))
        #expect(collector.bodies == ["{}"])
        #expect(counters.lifetime.droppedTelemetry.isEmpty)
    }

    @Test("counts what the collector rejects of a request, and not more than was sent", arguments: [(2, 2), (9, 3)])
    func rejectedPart(rejected: Int, counted: Int) async {
        let collector = FakeCollector(.response(CollectorResponse(status: 200, rejected: rejected)))
        await sender(to: collector).send(request, within: .seconds(60))
        #expect(dropped(.refused) == counted)
    }

    @Test("does not repeat a request that would be refused again", arguments: [302, 400, 401, 404, 413, 500])
    func refused(status: Int) async {
        let collector = FakeCollector(FakeCollector.status(status))
        await sender(to: collector).send(request, within: .seconds(60))
        #expect(collector.bodies.count == 1)
        #expect(dropped(.refused) == 3)
    }

    @Test("repeats a request that can succeed later", arguments: [429, 502, 503, 504])
    func retried(status: Int) async {
        let collector = FakeCollector(FakeCollector.status(status), FakeCollector.ok)
        let sender = sender(to: collector)
        async let sent: Void = sender.send(request, within: .seconds(60))
        await time.sleepers(atLeast: 1)
        time.advance(by: .seconds(1))
        await sent
        #expect(collector.bodies.count == 2)
        #expect(counters.lifetime.droppedTelemetry.isEmpty)
    }

    @Test("waits as long as the collector asks")
    func retryAfter() async {
        let collector = FakeCollector(FakeCollector.status(503, retryAfter: .seconds(20)), FakeCollector.ok)
        let sender = sender(to: collector)
        async let sent: Void = sender.send(request, within: .seconds(60))
        await time.sleepers(atLeast: 1, for: .seconds(20))
        time.advance(by: .milliseconds(19_999))
        #expect(collector.bodies.count == 1)
        time.advance(by: .milliseconds(1))
        await sent
        #expect(collector.bodies.count == 2)
    }

    @Test("sends nothing before the end of a pause that is longer than its time, and then sends again")
    func longPause() async {
        let collector = FakeCollector(FakeCollector.status(429, retryAfter: .seconds(100)), FakeCollector.ok)
        let sender = sender(to: collector)
        await sender.send(request, within: .seconds(60))
        #expect(dropped(.failed) == 3)
        time.advance(by: .seconds(30))
        await sender.send(request, within: .seconds(60))
        #expect(collector.bodies.count == 1, "the pause has not ended")
        #expect(dropped(.failed) == 6)
        time.advance(by: .seconds(70))
        await sender.send(request, within: .seconds(60))
        #expect(collector.bodies.count == 2)
        #expect(dropped(.failed) == 6)
    }

    @Test(
        "gives up at the end of its time if the collector cannot be reached",
        arguments: [HTTPError.Kind.connect, .resolve, .timeout, .receiveFailed, .expired]
    )
    func away(kind: HTTPError.Kind) async {
        let collector = FakeCollector(FakeCollector.failure(kind))
        let sender = sender(to: collector)
        let sending = Task { await sender.send(request, within: .seconds(60)) }
        let ticks = Task {
            while !Task.isCancelled {
                await time.sleepers(atLeast: 1)
                time.advance(by: .seconds(1))
            }
        }
        await sending.value
        ticks.cancel()
        // 1, 2, 4, 8, 16 and 30 seconds, of each of which a random half can be left out.
        #expect(5...8 ~= collector.bodies.count, "\(collector.bodies.count)")
        #expect(dropped(.failed) == 3)
    }

    @Test("takes a flood of a response for what its status says")
    func flood() async {
        var flood = HTTPError(kind: .bodyTooLarge, message: "")
        let refusing = FakeCollector(.error(flood))
        await sender(to: refusing).send(request, within: .seconds(60))
        #expect(refusing.bodies.count == 1)
        #expect(dropped(.refused) == 3)

        flood = HTTPError(kind: .bodyTooLarge, message: "", partialResponse: Self.response(status: 200))
        let accepting = FakeCollector(.error(flood))
        await sender(to: accepting).send(request, within: .seconds(60))
        #expect(accepting.bodies.count == 1)
        #expect(dropped(.refused) == 3, "no more")
    }

    private static func response(status: Int) -> HTTPResponse {
        HTTPResponse(status: status, body: HTTPBody([]), isHTTP2: false, newConnection: true, head: HTTPBody([]))
    }

    @Test("counts what was left out of a request, and does not send an empty one")
    func overflow() async {
        let collector = FakeCollector(FakeCollector.ok)
        await sender(to: collector).send(EncodedTelemetry(body: [], items: 0, dropped: 4), within: .seconds(60))
        #expect(collector.bodies.isEmpty)
        #expect(dropped(.overflow) == 4)
    }

    @Test(
        "reads the number of rejected items in every form",
        arguments: [
            (#"{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"no"}}"#, 3),
            (#"{"partialSuccess":{"rejectedSpans":2}}"#, 2), (#"{"partialSuccess":{"rejectedSpans":"-2"}}"#, 0),
            (#"{"partialSuccess":{"errorMessage":"only a warning"}}"#, 0), ("{}", 0), ("", 0), ("[1]", 0), ("ok", 0),
            (#"{"partialSuccess":{"rejectedSpans":"99999999999999999999"}}"#, 0),
        ]
    )
    func partialSuccess(body: String, rejected: Int) {
        #expect(CollectorResponse.rejected(in: Array(body.utf8)) == rejected)
    }
}

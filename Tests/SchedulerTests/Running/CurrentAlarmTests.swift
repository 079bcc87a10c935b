import Scheduler
import Storage
import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import Scheduler

@Suite("Current alarms")
struct CurrentAlarmTests {
    private let time = ManualTime()
    private let lines = CapturedLines()
    private let log: EngineLog

    init() {
        let counters = EventCounters(time: time)
        log = EngineLog(
            metrics: MetricsLog(sink: lines, worker: "w", time: time),
            diagnostics: DiagnosticLog(level: .error, time: time),
            counters: counters,
            time: time
        )
    }

    @Test("An alarm is current for an hour after its cause was last seen")
    func hour() {
        let begin = time.now
        log.raise(.keyRingRefused, "text")
        time.advance(by: .seconds(600))
        log.raise(.keyRingRefused, "again")
        let expected = CurrentAlarm(
            kind: .keyRingRefused,
            client: "",
            text: "again",
            since: begin,
            until: begin + .seconds(4200),
            count: 2
        )
        #expect(log.currentAlarms == [expected])
        time.advance(by: .milliseconds(3_599_999))
        #expect(log.currentAlarms == [expected])
        time.advance(by: .milliseconds(1))
        #expect(log.currentAlarms == [])
        log.raise(.keyRingRefused, "later")
        #expect(log.currentAlarms.map(\.count) == [1])
        #expect(log.currentAlarms.map(\.since) == [begin + .seconds(4200)])
    }

    @Test(
        "An alarm whose cause is looked at every ten minutes is current for 15, and what has happened for an hour",
        arguments: [
            (AlarmKind.unreadableToken, 900), (.refreshLoop, 900), (.rotatedTokensDropped, 3600), (.spillFailed, 3600),
        ] as [(AlarmKind, Int64)]
    )
    func length(kind: AlarmKind, seconds: Int64) {
        log.raise(kind, "text")
        #expect(log.currentAlarms.map(\.until) == [time.now + .seconds(seconds)])
        time.advance(by: .milliseconds(seconds * 1000 - 1))
        #expect(log.currentAlarms.map(\.kind) == [kind])
        time.advance(by: .milliseconds(1))
        #expect(log.currentAlarms == [])
    }

    @Test("An alarm about a breaker ends when it closes")
    func breaker() {
        log.breaker(.opened(.clientFault("invalid_client")), client: "a")
        log.breaker(.opened(.endpointFailing), client: "b")
        #expect(log.currentAlarms.map(\.kind) == [.clientFault, .endpointFailing])
        log.breaker(.closed, client: "a")
        #expect(log.currentAlarms.map(\.client) == ["b"])
    }

    @Test("An alarm about an app that Google cannot verify names App Check and its section of the runbook")
    func appCheck() throws {
        log.breaker(.opened(.clientFault("app_not_authentic")), client: "a")
        let line = try #require(lines.of("alarm").first)
        #expect(lines.of("alarm").count == 1 && line["kind"] == "client_fault" && line["client"] == "a")
        let text = try #require(line["text"])
        #expect(text.contains("App Check") && text.hasSuffix("see docs/runbook.md#google-verifies-the-app"))
        #expect(log.currentAlarms.map(\.text) == [text], "the log does not shorten it")
        log.breaker(.closed, client: "a")
        #expect(log.currentAlarms.isEmpty)
        log.breaker(.opened(.clientFault("invalid_request")), client: "a")
        #expect(log.currentAlarms.first?.text.contains("App Check") == false)
    }

    @Test("An alarm that ended and begins again is logged again, at most every five minutes")
    func renewed() {
        log.raise(.keyRingRefused, "first")
        time.advance(by: .seconds(300))
        log.raise(.keyRingRefused, "still")
        #expect(lines.of("alarm").count == 1, "it is current, so it is logged once an hour")
        log.end([.keyRingRefused])
        #expect(log.currentAlarms == [])
        log.raise(.keyRingRefused, "again")
        #expect(lines.of("alarm").count == 2)
        for _ in 0..<60 {
            log.end([.keyRingRefused])
            time.advance(by: .seconds(5))
            log.raise(.keyRingRefused, "comes and goes")
        }
        #expect(lines.of("alarm").count == 3, "five minutes have passed")
    }

    @Test("A trouble that begins again within five minutes, and stays, is logged after them")
    func renewedAndStaying() {
        log.raise(.keyRingRefused, "first")
        time.advance(by: .seconds(100))
        log.end([.keyRingRefused])
        for seconds in [100, 110, 90] {
            time.advance(by: .seconds(seconds))
            log.raise(.keyRingRefused, "after \(seconds)")
        }
        #expect(lines.of("alarm").count == 2, "once, at the first report after five minutes")
    }
}

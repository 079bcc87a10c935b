import Glibc
import TestSupport
import Testing

@testable import Base
@testable import Telemetry

@Suite("The diagnostic log")
struct DiagnosticLogTests {
    private let time = ManualTime(now: Timestamp(secondsSince1970: 1_795_230_059))

    @Test("shows time, level, message and fields")
    func plain() {
        let capture = DiagnosticCapture(time: time)
        capture.log.notice("grants scanned", ["due": "12", "file": "a b.db"])
        #expect(capture.lines() == [#"2026-11-21T03:00:59Z notice grants scanned due=12 file="a b.db""#])
    }

    @Test("shows the trace of a request in lines about it, and in no other line, which can be about the work of many")
    func trace() {
        let capture = DiagnosticCapture(time: time)
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
        TraceContext.$current.withValue(TraceContext(traceparent: header)) {
            capture.log.notice("a", ["request": "12", "grant": "34"])
            capture.log.notice("b", ["session": "56"])
            capture.log.notice("c", ["grant": "34"])
        }
        capture.log.notice("d", ["request": "12"])
        let trace = "trace_id=4bf92f3577b34da6a3ce929d0e0e4736"
        let begin = "2026-11-21T03:00:59Z notice"
        #expect(
            capture.lines() == [
                "\(begin) a request=12 \(trace) grant=34", "\(begin) b session=56 \(trace)", "\(begin) c grant=34",
                "\(begin) d request=12",
            ]
        )
    }

    @Test(
        "leaves time and level to the journal if the journal reads the log",
        arguments: [(LogLevel.error, 3), (.warning, 4), (.notice, 5), (.info, 6), (.debug, 7)]
    )
    func journal(level: LogLevel, priority: Int) {
        let pipe = TestPipe()
        var status = stat()
        #expect(fstat(pipe.writer, &status) == 0)
        let stream = "\(status.st_dev):\(status.st_ino)"
        let log = DiagnosticLog(level: .debug, time: time, descriptor: pipe.writer, journalStream: stream)
        log.log(level, "hello", ["a": "1"])
        #expect(pipe.readAvailable() == "<\(priority)>hello a=1\n")
    }

    @Test("keeps time and level if the journal does not read this descriptor", arguments: [nil, "", "1:2"])
    func notJournal(stream: String?) {
        let pipe = TestPipe()
        let log = DiagnosticLog(level: .debug, time: time, descriptor: pipe.writer, journalStream: stream)
        log.info("hello")
        #expect(pipe.readAvailable() == "2026-11-21T03:00:59Z info hello\n")
    }

    @Test("shows the lines that its level allows, and the level can be changed", arguments: LogLevel.allCases)
    func levels(level: LogLevel) {
        let capture = DiagnosticCapture(level: .error)
        capture.log.level = level
        for each in LogLevel.allCases { capture.log.log(each, "x") }
        #expect(capture.lines().count == LogLevel.allCases.filter { $0 <= level }.count)
    }

    @Test("reads a level by its name", arguments: zip(["error", "debug", "loud"], [LogLevel.error, .debug, nil]))
    func names(name: String, level: LogLevel?) {
        #expect(LogLevel(rawValue: name) == level)
    }

    @Test("never evaluates the fields of a line that is not shown")
    func lazy() {
        let capture = DiagnosticCapture(level: .info)
        var made = 0
        func costly() -> String {
            made += 1
            return "x"
        }
        capture.log.debug("x", ["v": costly()])
        #expect(made == 0)
        capture.log.info("x", ["v": costly()])
        #expect(made == 1)
    }

    @Test(
        "keeps every value on its line",
        arguments: [
            ("a\nb", #"a\nb"#), ("", #""""#), ("say \"hi\"", #""say \"hi\"""#), ("\u{1b}[2J", #"\u{1b}[2J"#),
            ("a=b", #""a=b""#), ("back\\slash", #""back\\slash""#), ("\u{202e}x", #"\u{202e}x"#),
        ]
    )
    func escapes(value: String, expected: String) {
        let capture = DiagnosticCapture(time: time)
        capture.log.error("x", ["v": value])
        #expect(capture.lines() == ["2026-11-21T03:00:59Z error x v=\(expected)"])
    }

    @Test("limits the length of values and lines")
    func caps() {
        let capture = DiagnosticCapture(time: time)
        let long = String(repeating: "v", count: 1_000_000)
        capture.log.error("x", ["v": long])
        #expect(capture.lines().first?.utf8.count == "2026-11-21T03:00:59Z error x v=".utf8.count + 512)
        let controls = String(repeating: "\u{1}", count: 512)
        capture.log.error("x", ["a": controls, "b": controls, "c": controls])
        let line = capture.lines().first ?? ""
        #expect(line.utf8.count == 4_000)
        #expect(line.hasSuffix("…"))
    }

    @Test("continues without a stalled reader, and reports the number of lost lines", .timeLimit(.minutes(10)))
    func stalls() {
        let capture = DiagnosticCapture(time: time)
        #expect(capture.pipe.shrink(toPages: 2) == 8192)
        for _ in 0..<500 {
            capture.log.info("a line of a certain length", ["v": "0123456789012345678901234567890123456789"])
        }
        let before = capture.lines()
        #expect(!before.isEmpty)
        capture.log.info("back")
        let after = capture.lines()
        #expect(
            after == [
                "2026-11-21T03:00:59Z warning diagnostics were lost lines=\(500 - before.count)",
                "2026-11-21T03:00:59Z info back",
            ]
        )
    }
}

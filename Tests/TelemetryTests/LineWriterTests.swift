import Foundation
import Glibc
import Telemetry
import TestSupport
import Testing

@testable import Base

@Suite("A line writer", .timeLimit(.minutes(10)))
struct LineWriterTests {
    private let folder: TemporaryFolder
    private let time = ManualTime()
    private let diagnostics = DiagnosticCapture()

    init() throws {
        folder = try TemporaryFolder()
    }

    private func writer(_ name: String = "log", capacity: Int = 10_000) throws -> LineWriter {
        try LineWriter(to: .file(folder.path(name)), time: time, diagnostics: diagnostics.log, capacity: capacity)
    }

    @Test("keeps lines of many tasks and of two writers whole, and each task's in order")
    func concurrency() async throws {
        let writers = [try writer(), try writer()]
        await withTaskGroup { group in
            for task in 0..<16 {
                group.addTask {
                    for number in 0..<200 {
                        writers[task % 2].write(numbered(task * 1_000 + number, padding: 10 * (number % 50)))
                    }
                }
            }
        }
        for writer in writers { #expect(await writer.flush(within: .seconds(120))) }
        let found = try numbers(try folder.text("log"))
        #expect(found.count == 3_200)
        for task in 0..<16 {
            #expect(found.filter { $0 / 1_000 == task } == (0..<200).map { task * 1_000 + $0 })
        }
        #expect(writers.map(\.droppedLines) == [0, 0])
    }

    @Test("creates a file that the group may read and other users may not")
    func mode() throws {
        _ = try writer()
        var status = stat()
        #expect(stat(folder.path("log"), &status) == 0)
        #expect(status.st_mode & 0o137 == 0)
    }

    @Test("names the file that cannot be opened")
    func unopenable() throws {
        let path = folder.path("missing/log")
        let error = #expect(throws: FileError.self) { try writer("missing/log") }
        #expect(error?.description == "open \(path): No such file or directory")
    }

    @Test("does not wait for a missing reader of a named pipe")
    func namedPipe() throws {
        #expect(mkfifo(folder.path("pipe"), 0o600) == 0)
        #expect(throws: FileError.self) { try writer("pipe") }
    }

    @Test("follows its name within a second of a rotation, with or without a new file there", arguments: [true, false])
    func rotation(createsNew: Bool) async throws {
        let writer = try writer()
        writer.write(numbered(1))
        #expect(await writer.flush(within: .seconds(120)))
        try folder.rename("log", to: "log.1")
        if createsNew { try folder.write("", to: "log") }
        writer.write(numbered(2))
        #expect(await writer.flush(within: .seconds(120)))
        time.advance(by: .seconds(1))
        writer.write(numbered(3))
        #expect(await writer.flush(within: .seconds(120)))
        #expect(try numbers(try folder.text("log.1")) == [1, 2])
        #expect(try numbers(try folder.text("log")) == [3])
    }

    @Test("follows the file name at once on a reopen")
    func reopen() async throws {
        let writer = try writer()
        writer.write(numbered(1))
        writer.reopen()
        #expect(await writer.flush(within: .seconds(120)))
        try folder.rename("log", to: "log.1")
        writer.reopen()
        writer.write(numbered(2))
        #expect(await writer.flush(within: .seconds(120)))
        #expect(try numbers(try folder.text("log.1")) == [1])
        #expect(try numbers(try folder.text("log")) == [2])
    }

    @Test("continues in the old file while the new one cannot be opened, and reports that once")
    func unreopenable() async throws {
        try FileManager.default.createDirectory(at: folder.url.appending(path: "d"), withIntermediateDirectories: false)
        let writer = try writer("d/log")
        try folder.rename("d", to: "e")
        for number in 0..<3 {
            time.advance(by: .seconds(2))
            writer.write(numbered(number))
            #expect(await writer.flush(within: .seconds(120)))
        }
        #expect(try numbers(try folder.text("e/log")) == [0, 1, 2])
        let reported = diagnostics.lines()
        #expect(reported.count == 1)
        #expect(reported.first?.contains("a file of lines cannot be reopened") == true)
    }

    @Test("continues at the new end when the file is copied and truncated")
    func copyAndTruncate() async throws {
        let writer = try writer()
        writer.write(numbered(1, padding: 500))
        #expect(await writer.flush(within: .seconds(120)))
        #expect(truncate(folder.path("log"), 0) == 0)
        time.advance(by: .seconds(5))
        writer.write(numbered(2))
        #expect(await writer.flush(within: .seconds(120)))
        #expect(try folder.text("log") == "{\"number\":2}\n")
    }

    @Test(
        "starts a new line after the incomplete line of a killed worker",
        arguments: [("", ""), ("{\"number\":1}\n", "{\"number\":1}\n"), ("{\"num", "{\"num\n")]
    )
    func halfLine(before: String, expected: String) async throws {
        try folder.write(before, to: "log")
        let writer = try writer()
        writer.write(numbered(2))
        writer.write(numbered(3))
        #expect(await writer.flush(within: .seconds(120)))
        #expect(try folder.text("log") == expected + "{\"number\":2}\n{\"number\":3}\n")
    }

    @Test("counts the lines that a full disk refuses, and reports the loss once")
    func fullDisk() async throws {
        let writer = try LineWriter(to: .file("/dev/full"), time: time, diagnostics: diagnostics.log)
        for number in 0..<5 { writer.write(numbered(number)) }
        #expect(await writer.flush(within: .seconds(120)))
        #expect(writer.droppedLines == 5)
        let reported = diagnostics.lines()
        #expect(reported.count == 1)
        #expect(
            reported.first?.hasSuffix(#"error lines are being lost reason="write /dev/full: No space left on device""#)
                == true
        )
    }

    @Test("reports a line as unsafe if the queue is full or the line before it was lost")
    func uncertainLines() async throws {
        let full = try LineWriter(to: .file("/dev/full"), time: time, diagnostics: diagnostics.log)
        #expect(full.write(numbered(1)))
        #expect(await full.flush(within: .seconds(120)))
        #expect(!full.write(numbered(2)))

        let pipe = TestPipe()
        #expect(pipe.shrink() == 4096)
        let stalled = try LineWriter(
            to: .descriptor(pipe.writer),
            time: time,
            diagnostics: diagnostics.log,
            capacity: 2
        )
        #expect((0..<3).map { stalled.write(numbered($0, padding: 10_000)) } == [true, true, false])
        async let text = pipe.readToEnd()
        #expect(await stalled.flush(within: .seconds(120)))
        close(pipe.writer)
        #expect(try numbers(await text) == [0, 1])
        close(pipe.reader)
    }

    @Test("reports lines as unsafe while the oldest one has waited for a second, until the reader reads again")
    func stalledReader() async throws {
        let pipe = TestPipe()
        #expect(pipe.shrink() == 4096)
        let writer = try LineWriter(to: .descriptor(pipe.writer), time: time, diagnostics: diagnostics.log)
        #expect(writer.write(numbered(0, padding: 10_000)))
        time.advance(by: .milliseconds(999))
        #expect(writer.write(numbered(1)))
        #expect(!writer.isFailing)
        time.advance(by: .milliseconds(1))
        #expect(writer.isFailing)
        #expect(!writer.write(numbered(2)))
        // No line is lost for that.
        #expect(writer.droppedLines == 0)
        async let text = pipe.readToEnd()
        #expect(await writer.flush(within: .seconds(120)))
        #expect(!writer.isFailing)
        #expect(writer.write(numbered(3)))
        #expect(await writer.flush(within: .seconds(120)))
        close(pipe.writer)
        #expect(try numbers(await text) == [0, 1, 2, 3])
        close(pipe.reader)
    }

    @Test("logs at its end how many lines were lost, those that never fit and those that still wait")
    func lostAtTheEnd() async throws {
        let pipe = TestPipe()
        #expect(pipe.shrink() == 4096)
        let writer = try LineWriter(
            to: .descriptor(pipe.writer),
            time: time,
            diagnostics: diagnostics.log,
            capacity: 5
        )
        for number in 0..<8 { writer.write(numbered(number, padding: 10_000)) }
        await writer.finish(within: .milliseconds(1))
        #expect(diagnostics.lines().last?.hasSuffix("error lines were lost since the start lost=8") == true)
        async let text = pipe.readToEnd()
        #expect(await writer.flush(within: .seconds(120)))
        close(pipe.writer)
        #expect(try numbers(await text) == [0, 1, 2, 3, 4])
        close(pipe.reader)
    }

    @Test("logs nothing at its end if no line was lost")
    func nothingLost() async throws {
        let writer = try writer()
        writer.write(numbered(1))
        await writer.finish(within: .seconds(120))
        #expect(diagnostics.lines().isEmpty)
    }

    @Test("removes a partly written line")
    func noRoomForAWholeLine() async {
        await #expect(processExitsWith: .success) {
            // A limit on the file size truncates a write, like the last free block of a disk.
            signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit(rlim_cur: 1_000, rlim_max: 1_000)
            let folder = try TemporaryFolder()
            let capture = DiagnosticCapture()
            let writer = try LineWriter(to: .file(folder.path("log")), time: ManualTime(), diagnostics: capture.log)
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            for number in 0..<4 { writer.write(numbered(number, padding: 300)) }
            writer.write(numbered(4))
            #expect(await writer.flush(within: .seconds(120)))
            #expect(try numbers(try folder.text("log")) == [0, 1, 2, 4])
            #expect(writer.droppedLines == 1)
            let reported = capture.lines()
            #expect(reported.count == 2)
            #expect(reported.last?.hasSuffix("notice lines are written again lost=1") == true)
        }
    }

    @Test("counts the lines that a pipe without a reader refuses, and continues")
    func closedPipe() async throws {
        signal(SIGPIPE, SIG_IGN)
        let pipe = TestPipe()
        let writer = try LineWriter(to: .descriptor(pipe.writer), time: time, diagnostics: diagnostics.log)
        writer.write(numbered(1))
        #expect(await writer.flush(within: .seconds(120)))
        try await pipe.closeReader()
        for number in 0..<3 { writer.write(numbered(number)) }
        #expect(await writer.flush(within: .seconds(120)))
        #expect(writer.droppedLines == 3)
        #expect(diagnostics.lines().count == 1)
        close(pipe.writer)
    }

    @Test("never waits for a slow reader: lines beyond the queue are lost and counted", arguments: [0, O_NONBLOCK])
    func slowPipe(flags: Int32) async throws {
        let pipe = TestPipe()
        #expect(fcntl(pipe.writer, F_SETFL, flags) == 0)
        #expect(pipe.shrink() == 4096)
        let writer = try LineWriter(
            to: .descriptor(pipe.writer),
            time: time,
            diagnostics: diagnostics.log,
            capacity: 20
        )
        for number in 0..<100 { writer.write(numbered(number, padding: 1_000)) }
        #expect(await writer.flush(within: .milliseconds(20)) == false)
        let dropped = writer.droppedLines
        #expect(dropped >= 70)

        async let text = pipe.readToEnd()
        #expect(await writer.flush(within: .seconds(120)))
        close(pipe.writer)
        let found = try numbers(await text)
        #expect(found.count == 100 - dropped)
        #expect(found == found.sorted())
        #expect(writer.droppedLines == dropped)
        let reported = diagnostics.lines()
        #expect(reported.count == 1)
        #expect(reported.first?.contains("because their reader is slow waiting=20") == true)
        close(pipe.reader)
    }

    @Test("completely writes a line longer than the pipe's buffer", arguments: [0, O_NONBLOCK])
    func longLine(flags: Int32) async throws {
        let pipe = TestPipe()
        #expect(fcntl(pipe.writer, F_SETFL, flags) == 0)
        #expect(pipe.shrink() == 4096)
        let writer = try LineWriter(to: .descriptor(pipe.writer), time: time, diagnostics: diagnostics.log)
        async let text = pipe.readToEnd()
        writer.write(numbered(1, padding: 100_000))
        #expect(await writer.flush(within: .seconds(120)))
        close(pipe.writer)
        #expect(try numbers(await text) == [1])
        close(pipe.reader)
    }
}

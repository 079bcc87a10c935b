import Clocks
import Foundation
import Glibc
import JSON
import Observability
import Synchronization

/// A temporary folder for one test, removed with it.
final class TemporaryFolder {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "observability-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func path(_ name: String) -> String { url.appending(path: name).path }

    func text(_ name: String) throws -> String {
        String(decoding: try Data(contentsOf: url.appending(path: name)), as: UTF8.self)
    }

    func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: url.appending(path: name))
    }

    func rename(_ old: String, to new: String) throws {
        try FileManager.default.moveItem(at: url.appending(path: old), to: url.appending(path: new))
    }
}

/// A pipe whose ends a test opens and closes itself.
struct TestPipe {
    let reader: Int32
    let writer: Int32

    /// Creates a named pipe and removes its name at once, because only `open` keeps a descriptor from programs that are
    /// started at the same time.
    ///
    /// A reader inherited by another test's program would keep the pipe alive.
    init() {
        let path = FileManager.default.temporaryDirectory.appending(path: "pipe-\(UUID().uuidString)").path
        precondition(mkfifo(path, 0o600) == 0, "mkfifo failed with errno \(errno)")
        reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        writer = open(path, O_WRONLY | O_CLOEXEC)
        precondition(reader >= 0 && writer >= 0 && fcntl(reader, F_SETFL, 0) == 0, "no pipe, errno \(errno)")
        unlink(path)
    }

    /// Limits the pipe to a few pages and returns its size in bytes.
    ///
    /// 1031 is `F_SETPIPE_SZ` (https://man7.org/linux/man-pages/man2/F_GETPIPE_SZ.2const.html), which the Glibc module
    /// does not export.
    func shrink(toPages pages: Int32 = 1) -> Int { Int(fcntl(writer, 1031, pages * 4096)) }

    /// Reads the available bytes without waiting for more.
    func readAvailable() -> String {
        var bytes: [UInt8] = []
        while true {
            var request = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
            guard poll(&request, 1, 0) == 1 else { break }
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = read(reader, &buffer, buffer.count)
            guard count > 0 else { break }
            bytes += buffer[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Reads on a separate thread until the writing end is closed.
    func readToEnd() async -> String {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [reader] in
                var bytes: [UInt8] = []
                var buffer = [UInt8](repeating: 0, count: 4096)
                while case let count = read(reader, &buffer, buffer.count), count > 0 { bytes += buffer[..<count] }
                continuation.resume(returning: String(decoding: bytes, as: UTF8.self))
            }
        }
    }
}

/// Lines kept in memory.
final class MemorySink: LineSink {
    private let kept = Mutex<[JSONLine]>([])

    var lines: [JSONLine] { kept.withLock { $0 } }
    var droppedLines: Int { 0 }

    @discardableResult
    func write(_ line: JSONLine) -> Bool {
        kept.withLock { $0.append(line) }
        return true
    }
}

/// A diagnostic log whose lines a test reads back.
struct DiagnosticProbe {
    let pipe = TestPipe()
    let log: DiagnosticLog

    init(level: LogLevel = .debug, time: any TimeSource = ManualTime()) {
        log = DiagnosticLog(level: level, time: time, descriptor: pipe.writer)
    }

    func lines() -> [String] { pipe.readAvailable().split(separator: "\n").map(String.init) }
}

/// Parses JSON objects, one per line; every line must be terminated.
func parseLines(_ text: String) throws -> [[String: Any]] {
    struct Malformed: Error { let line: String }
    guard text.isEmpty || text.hasSuffix("\n") else { throw Malformed(line: "the last line is not ended") }
    return try text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map { line in
        let value = try? JSONSerialization.jsonObject(with: Data(line.utf8))
        guard let object = value as? [String: Any] else { throw Malformed(line: String(line)) }
        return object
    }
}

/// Makes a line with a number, and padding that makes it `padding` bytes longer.
func numbered(_ number: Int, padding: Int = 0) -> JSONLine {
    var line = JSONLine()
    line.field("number", number)
    if padding > 0 { line.field("padding", String(repeating: "x", count: padding)) }
    return line
}

/// Returns the numbers of the lines in a text, in order.
func numbers(_ text: String) throws -> [Int] {
    try parseLines(text).compactMap { $0["number"] as? Int }
}

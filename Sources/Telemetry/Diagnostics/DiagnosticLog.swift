package import Base
private import Glibc
private import Synchronization

/// The worker's messages to its operator, one per line, on standard error.
///
/// Messages are fixed strings, so they cannot contain a secret. Variable parts go into fields, which are escaped and
/// shortened. A line is written on the caller's thread, because the last lines before an exit matter most. If the
/// reader has stalled, a line waits at most a tenth of a second, and the lines after it do not wait at all. These lines
/// are lost and counted. A later line reports their number once the reader has recovered.
package final class DiagnosticLog: Sendable {
    private struct State {
        var level: LogLevel
        var isStalled = false
        var lost = 0
    }

    /// Lines with these fields are about the request that the task answers.
    private static let keysOfRequests = ["request", "session"]
    private static let writeTimeout: Int32 = 100

    private let state: Mutex<State>
    private let time: any TimeSource
    private let descriptor: Int32
    private let isForJournal: Bool
    /// Puts the real paths of documents into a text that names them as `docs/`.
    private let located: @Sendable (String) -> String

    /// Opens the log on a descriptor that the caller keeps.
    ///
    /// `journalStream` is the value of `JOURNAL_STREAM` in the environment. It names the device and inode of the
    /// journal's socket. The journal reads the lines only if the descriptor is that socket
    /// (https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html#%24JOURNAL_STREAM).
    package init(
        level: LogLevel,
        time: any TimeSource,
        descriptor: Int32 = STDERR_FILENO,
        journalStream: String? = nil,
        located: @escaping @Sendable (String) -> String = { $0 }
    ) {
        state = Mutex(State(level: level))
        self.time = time
        self.descriptor = descriptor
        self.located = located
        let identity = FileIdentity(descriptor: descriptor)
        isForJournal = identity != nil && identity?.journalStream == journalStream
    }

    /// The least severe level that is still written.
    ///
    /// A reload can change it.
    package var level: LogLevel {
        get { state.withLock { $0.level } }
        set { state.withLock { $0.level = newValue } }
    }

    package func error(_ message: StaticString, _ fields: @autoclosure () -> KeyValuePairs<String, String> = [:]) {
        log(.error, message, fields())
    }

    package func warning(_ message: StaticString, _ fields: @autoclosure () -> KeyValuePairs<String, String> = [:]) {
        log(.warning, message, fields())
    }

    package func notice(_ message: StaticString, _ fields: @autoclosure () -> KeyValuePairs<String, String> = [:]) {
        log(.notice, message, fields())
    }

    package func info(_ message: StaticString, _ fields: @autoclosure () -> KeyValuePairs<String, String> = [:]) {
        log(.info, message, fields())
    }

    package func debug(_ message: StaticString, _ fields: @autoclosure () -> KeyValuePairs<String, String> = [:]) {
        log(.debug, message, fields())
    }

    /// Writes a line with a level that is known only at run time.
    ///
    /// The fields are not evaluated if the level is not shown.
    func log(
        _ level: LogLevel,
        _ message: StaticString,
        _ fields: @autoclosure () -> KeyValuePairs<String, String> = [:]
    ) {
        guard level <= self.level else { return }
        var line = DiagnosticLine(
            isForJournal: isForJournal,
            at: time.now,
            level: level,
            message: located(message.description)
        )
        for (key, value) in fields() {
            line.add(key, located(value))
            // Not in other lines: tasks that work for many inherit the trace of one.
            if Self.keysOfRequests.contains(key), let trace = TraceContext.current {
                line.add("trace_id", trace.traceID.text)
            }
        }
        // One thread at a time, so that the space that `poll` reported is still free for this thread's line.
        state.withLock { state in
            if state.lost > 0, isWritable(within: 0) {
                let message = "diagnostics were lost"
                var report = DiagnosticLine(isForJournal: isForJournal, at: time.now, level: .warning, message: message)
                report.add("lines", state.lost.description)
                if write(report.bytes) { state.lost = 0 }
            }
            state.isStalled = !isWritable(within: state.isStalled ? 0 : Self.writeTimeout)
            if state.isStalled || !write(line.bytes) { state.lost += 1 }
        }
    }

    private func isWritable(within milliseconds: Int32) -> Bool {
        var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        var readyCount = unsafe poll(&request, 1, milliseconds)
        while readyCount < 0, errno == EINTR { readyCount = unsafe poll(&request, 1, milliseconds) }
        return readyCount == 1
    }

    private func write(_ bytes: [UInt8]) -> Bool {
        unsafe bytes.withUnsafeBytes { buffer in
            var written = unsafe Glibc.write(descriptor, buffer.baseAddress, buffer.count)
            while written < 0, errno == EINTR {
                written = unsafe Glibc.write(descriptor, buffer.baseAddress, buffer.count)
            }
            return written == buffer.count
        }
    }
}

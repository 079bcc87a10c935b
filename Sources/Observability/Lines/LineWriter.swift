package import Clocks
private import Dispatch
package import JSON
private import Synchronization

/// Writes whole lines to a file or a pipe without making those who have something to say wait for it.
///
/// Lines wait in a queue that one private serial Dispatch queue empties, so a reader that stalls holds up one thread of
/// its own and no refresh. When the queue is full, new lines are lost and counted. Several processes may write into one
/// file: it is opened for appending and each line is one `write`, which Linux does not mix with another on a local file.
/// Into a pipe only lines up to `PIPE_BUF` (4096 bytes) stay whole beside other writers.
///
/// The program ignores `SIGPIPE`; a pipe without a reader is then a failure like any other.
package final class LineWriter: LineSink {
    private struct Backlog {
        var lines: [[UInt8]] = []
        /// The lines not yet written, those that the drain has taken included.
        var count = 0
        var isDraining = false
        /// Files that are to be opened anew and are not yet.
        var reopenings = 0
        var isOverflowing = false
        /// Whether the line that was written last was lost.
        var isFailing = false
        var dropped = 0
    }

    /// How long lines wait for company: waking the queue for each one costs more than writing it.
    private static let gathering = DispatchTimeInterval.milliseconds(2)
    /// After so many lines their places are free again.
    private static let tallied = 32

    private let capacity: Int
    private let diagnostics: DiagnosticLog
    private let backlog = Mutex(Backlog())
    /// Taken on the queue alone, so nobody ever waits for this lock while a `write` hangs.
    private let output: Mutex<LineOutput>
    private let queue = DispatchQueue(label: "refresh-worker.lines")

    package init(
        to destination: LineDestination,
        time: any TimeSource,
        diagnostics: DiagnosticLog,
        capacity: Int = 10_000
    ) throws(LineFileError) {
        output = Mutex(try LineOutput(destination, time: time, diagnostics: diagnostics))
        self.diagnostics = diagnostics
        self.capacity = capacity
    }

    package var droppedLines: Int { backlog.withLock { $0.dropped } }

    @discardableResult
    package func write(_ line: JSONLine) -> Bool {
        let bytes = line.bytes
        let (isSafe, overflowsNow) = backlog.withLock { backlog in
            guard backlog.count < capacity else {
                backlog.dropped += 1
                defer { backlog.isOverflowing = true }
                return (false, !backlog.isOverflowing)
            }
            // A reader that is only just too slow frees one place at a time: that is one overflow, told of once.
            if backlog.count <= capacity / 2 { backlog.isOverflowing = false }
            backlog.lines.append(bytes)
            backlog.count += 1
            if !backlog.isDraining {
                backlog.isDraining = true
                queue.asyncAfter(deadline: .now() + Self.gathering) { self.drain() }
            }
            return (!backlog.isFailing, false)
        }
        if overflowsNow {
            diagnostics.warning("lines are being lost because their reader is slow", ["waiting": capacity.description])
        }
        return isSafe
    }

    /// Opens the file anew by its name, as `SIGHUP` asks; lines written before go into the old one.
    package func reopen() {
        let before = backlog.withLock { backlog in
            backlog.reopenings += 1
            defer { backlog.lines = [] }
            return backlog.lines
        }
        queue.async {
            self.put(before)
            self.output.withLock { $0.reopen() }
            self.backlog.withLock { $0.reopenings -= 1 }
            self.drain()
        }
    }

    /// Waits until what was written before is in the file, or lost for good; `false` when `limit` ran out first.
    package func flush(within limit: Duration = .seconds(5)) async -> Bool {
        await withCheckedContinuation { continuation in
            let answer = FirstAnswer(continuation)
            queue.async {
                self.drain()
                answer.give(true)
            }
            let deadline = DispatchTime.now() + .milliseconds(Int(limit.wholeMilliseconds))
            DispatchQueue.global().asyncAfter(deadline: deadline) { answer.give(false) }
        }
    }

    private func drain() {
        while let lines = nextLines() { put(lines) }
    }

    private func put(_ lines: [[UInt8]]) {
        var rest = lines[...]
        while !rest.isEmpty {
            let outcomes = output.withLock { output in rest.prefix(Self.tallied).map { output.write($0) } }
            rest = rest.dropFirst(outcomes.count)
            backlog.withLock { backlog in
                backlog.count -= outcomes.count
                backlog.isFailing = outcomes.last == false
                backlog.dropped += outcomes.count { !$0 }
            }
        }
    }

    /// Takes the lines that wait; nothing, and the end of the drain, when there are none.
    private func nextLines() -> [[UInt8]]? {
        backlog.withLock { backlog in
            // Lines that came after the wish for a new file wait for that file.
            guard !backlog.lines.isEmpty, backlog.reopenings == 0 else {
                backlog.isDraining = false
                return nil
            }
            defer { backlog.lines = [] }
            return backlog.lines
        }
    }
}

/// Resumes a waiting task with whichever of two answers comes first.
private final class FirstAnswer: Sendable {
    private let continuation: Mutex<CheckedContinuation<Bool, Never>?>

    init(_ continuation: CheckedContinuation<Bool, Never>) {
        self.continuation = Mutex(continuation)
    }

    func give(_ answer: Bool) {
        continuation.withLock { continuation in
            continuation?.resume(returning: answer)
            continuation = nil
        }
    }
}

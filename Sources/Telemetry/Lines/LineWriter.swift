package import Base
private import Dispatch
private import Synchronization

/// Writes whole lines to a file or a pipe without making the callers wait.
///
/// Lines wait in a queue that one private serial Dispatch queue empties, so a stalled reader blocks one dedicated
/// thread and no refresh. When the queue is full, new lines are lost and counted. While its oldest line has waited for
/// a second, each line is reported as unsafe, because a stalled reader might never read it.
///
/// Several processes can write to one file: it is opened for appending and each `write` has whole lines, which Linux
/// does not mix with others on a local file. In a pipe with several writers, only lines up to `PIPE_BUF` (4096 bytes)
/// stay whole.
///
/// The program ignores `SIGPIPE`, so a pipe without a reader is an ordinary error.
package final class LineWriter: LineSink {
    private struct Backlog {
        var lines = LineBlock()
        /// Lines not yet written, including those that are being written.
        var count = 0
        /// The arrival of the oldest of the lines that are being written.
        var writingSince: BootInstant?
        var isDraining = false
        /// Requested reopenings that are not done yet.
        var reopenings = 0
        var isOverflowing = false
        /// `true` if the last line was lost.
        var isFailing = false
        var dropped = 0

        /// The arrival of the oldest line that is not yet written.
        var oldestArrival: BootInstant? { writingSince ?? lines.arrivals.first }

        mutating func takeLines() -> LineBlock {
            if writingSince == nil { writingSince = lines.arrivals.first }
            defer { lines = LineBlock(asLargeAs: lines) }
            return lines
        }

        func isStalled(at now: BootInstant) -> Bool {
            guard let oldestArrival else { return false }
            return now - oldestArrival >= LineWriter.maximumWait
        }
    }

    /// A line that waits for longer is not sure to be written: its reader has stalled.
    static let maximumWait: Duration = .seconds(1)

    /// How long lines are collected: waking the queue for each line costs more than writing it.
    static let collectionDelay: Duration = .milliseconds(5)

    /// Lines that can wait.
    package static let defaultCapacity = 10_000
    /// How long the last lines can take when the process ends.
    package static let maximumFlush: Duration = .seconds(5)

    private let capacity: Int
    private let time: any TimeSource
    private let diagnostics: DiagnosticLog
    private let backlog = Mutex(Backlog())
    /// Only taken on the queue, so callers never wait for this lock while a `write` stalls.
    private let output: Mutex<LineOutput>
    private let queue = DispatchQueue(label: "refresh-worker.lines")

    package init(
        to destination: LineDestination,
        time: any TimeSource,
        diagnostics: DiagnosticLog,
        capacity: Int = defaultCapacity
    ) throws(FileError) {
        output = Mutex(try LineOutput(destination, time: time, diagnostics: diagnostics))
        self.time = time
        self.diagnostics = diagnostics
        self.capacity = capacity
    }

    package var droppedLines: Int { backlog.withLock { $0.dropped } }

    package var isFailing: Bool {
        let now = time.sinceBoot
        return backlog.withLock { $0.isFailing || $0.isOverflowing || $0.isStalled(at: now) }
    }

    @discardableResult
    package func write(_ line: JSONLine) -> Bool {
        let now = time.sinceBoot
        let (isSafe, overflowsNow) = backlog.withLock { backlog in
            guard backlog.count < capacity else {
                backlog.dropped += 1
                defer { backlog.isOverflowing = true }
                return (false, !backlog.isOverflowing)
            }
            // A reader that is slightly too slow frees one place at a time. That counts as one overflow and is reported
            // once.
            if backlog.count <= capacity / 2 { backlog.isOverflowing = false }
            let isStalled = backlog.isStalled(at: now)
            backlog.lines.append(line, at: now)
            backlog.count += 1
            if !backlog.isDraining {
                backlog.isDraining = true
                queue.asyncAfter(deadline: Self.deadline(in: Self.collectionDelay)) { self.drain() }
            }
            return (!backlog.isFailing && !isStalled, false)
        }
        if overflowsNow {
            diagnostics.warning("lines are being lost because their reader is slow", ["waiting": capacity.description])
        }
        return isSafe
    }

    /// Opens the file again by its name, as `SIGHUP` requests.
    ///
    /// Lines written before go into the old file.
    package func reopen() {
        let before = backlog.withLock { backlog in
            backlog.reopenings += 1
            return backlog.takeLines()
        }
        queue.async {
            self.write(before)
            self.output.withLock { $0.reopen() }
            self.backlog.withLock { $0.reopenings -= 1 }
            self.drain()
        }
    }

    /// Waits until all earlier lines are written or lost, and returns `false` if `limit` runs out first.
    package func flush(within limit: Duration = maximumFlush) async -> Bool {
        await withCheckedContinuation { continuation in
            let result = FirstResult(continuation)
            queue.async {
                self.drain()
                result.resume(returning: true)
            }
            DispatchQueue.global().asyncAfter(deadline: Self.deadline(in: limit)) { result.resume(returning: false) }
        }
    }

    private static func deadline(in span: Duration) -> DispatchTime {
        .now() + .milliseconds(Int(span.wholeMilliseconds))
    }

    /// Waits as ``flush(within:)`` does, and logs how many lines have been lost since the start, with those that still
    /// wait.
    package func finish(within limit: Duration = maximumFlush) async {
        _ = await flush(within: limit)
        let lost = backlog.withLock { $0.dropped + $0.count }
        if lost > 0 { diagnostics.error("lines were lost since the start", ["lost": lost.description]) }
    }

    private func drain() {
        while let lines = nextLines() { write(lines) }
    }

    private func write(_ lines: LineBlock) {
        var first = 0
        backlog.withLock { $0.writingSince = lines.arrivals.first }
        while first < lines.count {
            let outcome = output.withLock { $0.write(lines, from: first) }
            first += outcome.done
            backlog.withLock { backlog in
                backlog.count -= outcome.done
                backlog.writingSince = first < lines.count ? lines.arrivals[first] : nil
                backlog.isFailing = outcome.isFailing
                backlog.dropped += outcome.lost
            }
        }
    }

    /// Takes the waiting lines, and returns `nil` and ends the drain if there are none.
    private func nextLines() -> LineBlock? {
        backlog.withLock { backlog in
            // Lines that came after a request to reopen wait for the new file.
            guard backlog.lines.count > 0, backlog.reopenings == 0 else {
                backlog.isDraining = false
                return nil
            }
            return backlog.takeLines()
        }
    }
}

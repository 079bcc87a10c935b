package import Base
private import Glibc

/// An open file to which lines are appended.
///
/// It is closed when it is destroyed, unless another owner opened it.
struct LineFile: ~Copyable {
    private let descriptor: Int32
    let path: String?
    let identity: FileIdentity?
    /// `true` if the next line must begin with a line break, because the file ends in an incomplete line.
    private(set) var endsInPartialLine: Bool

    /// Opens a file for appending, or creates it, or borrows a descriptor.
    ///
    /// `O_NONBLOCK` has no effect on a regular file. A named pipe without a reader fails at once, instead of blocking.
    init(_ destination: LineDestination) throws(FileError) {
        switch destination {
        case .descriptor(let number):
            descriptor = number
            path = nil
        case .file(let name):
            let flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
            let number = unsafe open(name, flags, 0o640)
            guard number >= 0 else { throw FileError(failed: "open", name, errno) }
            descriptor = number
            path = name
        }
        identity = FileIdentity(descriptor: descriptor)
        endsInPartialLine = if let path { Self.endsInPartialLine(path, identity) } else { false }
    }

    deinit {
        if path != nil { close(descriptor) }
    }

    /// The maximum number of bytes that are written at once.
    ///
    /// A write to a pipe stays whole only up to `PIPE_BUF`. Linux does not mix writes to a local file, however long.
    var maximumWrite: Int { identity?.isRegular == true ? 65_536 : 4_096 }

    /// Appends lines in one `write`, unless the system accepts only a part of them, and returns the number of lines
    /// that were written, and the failure that stopped the writing.
    ///
    /// A line that cannot be written completely is removed if possible. Otherwise the next line begins with a line
    /// break, so that only one line is lost, never two.
    mutating func append(_ lines: Range<Int>, of block: LineBlock) -> (written: Int, failure: FileError?) {
        let start = block.start(of: lines.lowerBound)
        let text = block.bytes[start..<block.start(of: lines.upperBound)]
        let head = endsInPartialLine ? 1 : 0
        let bytes = endsInPartialLine ? ArraySlice([UInt8(ascii: "\n")]) + text : text
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.write(descriptor, buffer.baseAddress?.advanced(by: written), buffer.count - written)
            }
            if count > 0 {
                written += count
                continue
            }
            // A file never accepts zero of several bytes without an error. If one did, retrying could loop forever.
            let code = count == 0 ? EIO : errno
            switch code {
            case EINTR: continue
            case EAGAIN: waitUntilWritable()
            default:
                let whole = lines.prefix { head + block.ends[$0] - start <= written }
                let end = whole.isEmpty ? 0 : head + block.start(of: whole.upperBound) - start
                if !whole.isEmpty { endsInPartialLine = false }
                if written > end, !removeLast(written - end) { endsInPartialLine = true }
                return (whole.count, FileError(failed: "write", path, code))
            }
        }
        endsInPartialLine = false
        return (lines.count, nil)
    }

    /// Waits until the reader of a pipe has read, or has gone.
    private func waitUntilWritable() {
        var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        unsafe poll(&request, 1, -1)
    }

    /// Removes the last `count` bytes written, if they are still at the end of a regular file.
    ///
    /// After an append, the descriptor's offset is the end of the appended bytes
    /// (https://pubs.opengroup.org/onlinepubs/9799919799/functions/write.html). A longer file therefore holds bytes
    /// that another process wrote since then, which must stay.
    private func removeLast(_ count: Int) -> Bool {
        let end = lseek(descriptor, 0, SEEK_CUR)
        guard let now = FileIdentity(descriptor: descriptor), now.isRegular, end >= count, now.size == Int64(end) else {
            return false
        }
        return ftruncate(descriptor, end - count) == 0 && lseek(descriptor, end - count, SEEK_SET) >= 0
    }

    /// Reads the last byte: a worker that was killed might have left an incomplete line.
    ///
    /// A file that is writable but not readable counts as incomplete, because an empty line costs less than a damaged
    /// line.
    private static func endsInPartialLine(_ path: String, _ identity: FileIdentity?) -> Bool {
        guard let identity, identity.isRegular, identity.size > 0 else { return false }
        let reader = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        guard reader >= 0 else { return true }
        defer { close(reader) }
        var last: UInt8 = 0
        return unsafe pread(reader, &last, 1, off_t(identity.size) - 1) != 1 || last != UInt8(ascii: "\n")
    }
}

extension FileError {
    /// `path` is `nil` for a descriptor without a name.
    fileprivate init(failed call: String, _ path: String?, _ code: Int32) {
        let reason = unsafe String(cString: strerror(code))
        self.init("\(call)\(path.map { " \($0)" } ?? ""): \(reason)", .system(code))
    }
}

/// The file that lines are written to, followed by its name, with the state of its failure reports.
struct LineOutput: ~Copyable {
    private let destination: LineDestination
    private let time: any TimeSource
    private let diagnostics: DiagnosticLog
    private var file: LineFile
    private var lastCheck: BootInstant
    private var lost = 0
    private var hasReportedReopening = false

    init(
        _ destination: LineDestination,
        time: any TimeSource,
        diagnostics: DiagnosticLog
    ) throws(FileError) {
        self.destination = destination
        self.time = time
        self.diagnostics = diagnostics
        file = try LineFile(destination)
        lastCheck = time.sinceBoot
    }

    /// Writes lines of a block from `first` on, as many as one `write` can take.
    ///
    /// The diagnostic log reports the first loss and the end of the losses.
    ///
    /// Returns how many lines are done, written or lost, and if the last of them was lost.
    mutating func write(_ block: LineBlock, from first: Int) -> (done: Int, lost: Int, isFailing: Bool) {
        followName()
        let lines = block.lines(from: first, upToBytes: file.maximumWrite)
        var outcome = (done: 0, lost: 0, isFailing: false)
        while outcome.done < lines.count {
            let (written, failure) = file.append(lines.dropFirst(outcome.done), of: block)
            if written > 0 { reportRecovery() }
            outcome.done += written
            outcome.isFailing = failure != nil
            guard let failure else { break }
            if lost == 0 { diagnostics.error("lines are being lost", ["reason": failure.description]) }
            lost += 1
            outcome.done += 1
            outcome.lost += 1
        }
        return outcome
    }

    private mutating func reportRecovery() {
        guard lost > 0 else { return }
        diagnostics.notice("lines are written again", ["lost": lost.description])
        lost = 0
    }

    /// Opens the file again by its name.
    ///
    /// If that fails, lines continue to go into the file that is open.
    mutating func reopen() {
        guard case .file = destination else { return }
        lastCheck = time.sinceBoot
        do {
            file = try LineFile(destination)
            hasReportedReopening = false
        } catch {
            if !hasReportedReopening {
                diagnostics.error("a file of lines cannot be reopened", ["reason": error.description])
            }
            hasReportedReopening = true
        }
    }

    /// Checks, at most once a second, if the file was moved or removed.
    private mutating func followName() {
        guard case .file(let path) = destination, time.sinceBoot - lastCheck >= .seconds(1) else { return }
        lastCheck = time.sinceBoot
        if FileIdentity(path: path) != file.identity { reopen() }
    }
}

/// The destination of lines.
package enum LineDestination: Equatable, Sendable {
    /// An open descriptor, which its owner keeps.
    case descriptor(Int32)
    /// A file, created if missing, and followed by its name when it is rotated.
    case file(String)

    package static let standardOutput = LineDestination.descriptor(STDOUT_FILENO)
}

/// A destination for whole lines: a file, a pipe, or memory in a test.
package protocol LineSink: Sendable {
    /// Takes a line without making the caller wait.
    ///
    /// Returns `false` if the line is lost, or might be lost because the line before it was.
    @discardableResult
    func write(_ line: JSONLine) -> Bool

    /// The number of lines lost since the start.
    var droppedLines: Int { get }
    /// `true` while lines cannot be written.
    var isFailing: Bool { get }
}

extension LineSink {
    package var isFailing: Bool { false }
}

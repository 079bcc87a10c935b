internal import Base
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
            guard number >= 0 else { throw FileError(failed: "open", path: name, code: errno) }
            descriptor = number
            path = name
        }
        identity = FileIdentity(descriptor: descriptor)
        endsInPartialLine = if let path { Self.endsInPartialLine(path, identity: identity) } else { false }
    }

    deinit {
        if path != nil { close(descriptor) }
    }

    /// The maximum number of bytes that are written at once. A write to a pipe stays whole only up to `PIPE_BUF`. Linux
    /// does not mix writes to a local file, however long.
    var maximumWrite: Int { identity?.isRegular == true ? 65_536 : 4_096 }

    /// The lines that were written, and the failure that stopped the writing.
    struct Written {
        let lines: Int
        var failure: FileError?
    }

    /// Appends lines in one `write`, unless the system accepts only a part of them.
    ///
    /// A line that cannot be written completely is removed if possible. Otherwise the next line begins with a line
    /// break, so that only one line is lost, never two.
    mutating func append(_ lines: Range<Int>, of block: LineBlock) -> Written {
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
                return Written(lines: whole.count, failure: FileError(failed: "write", path: path, code: code))
            }
        }
        endsInPartialLine = false
        return Written(lines: lines.count)
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
    private static func endsInPartialLine(_ path: String, identity: FileIdentity?) -> Bool {
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
    fileprivate init(failed call: String, path: String?, code: Int32) {
        let reason = unsafe String(cString: strerror(code))
        let failure = if let path { "\(call) \(path)" } else { call }
        self.init("\(failure): \(reason)", .system(code))
    }
}

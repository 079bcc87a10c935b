import Foundation
import Glibc
import TestSupport

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

    /// Closes the reader and waits until no other process has a copy of it.
    ///
    /// A process that another test starts has all descriptors until it executes its program.
    func closeReader() async throws {
        close(reader)
        try await poll(until: {
            var writable = pollfd(fd: writer, events: Int16(POLLOUT), revents: 0)
            return Glibc.poll(&writable, 1, 0) == 1 && writable.revents & Int16(POLLERR) != 0
        })
    }

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

import Base
import Crypto
import Glibc

/// The access to files.
struct FileReader: Sendable {
    let read: @Sendable (_ path: String) throws(InputError) -> [UInt8]
    /// Reads a file that holds a secret, and refuses it if other users can read it.
    let readPrivate: @Sendable (_ path: String) throws(InputError) -> Secret
    let exists: @Sendable (_ path: String) -> Bool
}

extension FileReader {
    /// Much larger than any configuration, so that a wrong path to a database or a device does not fill the memory.
    private static let maximumSize = 1 << 20

    /// The files of the machine. Reads block, so use this only at the start and on the thread that reloads.
    static let system = system(timeout: .seconds(5))

    /// Returns a reader that also reads pipes, `--config <(command)`, and waits up to `timeout` for each piece of
    /// them.
    static func system(timeout: Duration) -> FileReader {
        FileReader(
            read: { path throws(InputError) in try readWhole(path, timeout: timeout) },
            readPrivate: { path throws(InputError) in
                do throws(FileError) {
                    return try Secret.read(privateFile: path)
                } catch {
                    throw InputError("\(error)", mayPass: error.mayPass)
                }
            },
            exists: { path in unsafe access(path, F_OK) == 0 }
        )
    }

    private static func readWhole(_ path: String, timeout: Duration) throws(InputError) -> [UInt8] {
        // Opened without blocking, because a pipe without a writer would never open.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw InputError(code: errno) }
        defer { close(descriptor) }
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            try waitForData(descriptor, timeout: timeout)
            let count = unsafe Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0 && (errno == EINTR || errno == EAGAIN) { continue }
            guard count >= 0 else { throw InputError(code: errno) }
            guard count > 0 else { return content }
            content += buffer.prefix(count)
            guard content.count <= maximumSize else {
                throw InputError("is larger than 1 MiB")
            }
        }
    }
}

extension FileReader {
    /// Waits until there is data to read, or the end.
    ///
    /// A regular file is always ready.
    private static func waitForData(_ descriptor: Int32, timeout: Duration) throws(InputError) {
        var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        var ready: Int32
        repeat {
            ready = unsafe poll(&request, 1, Int32(clamping: timeout.wholeMilliseconds))
        } while ready < 0 && errno == EINTR
        guard ready == 0 else { return }
        let seconds = timeout.components.seconds
        throw InputError("is a pipe that nothing was written to for \(seconds) s")
    }
}

extension InputError {
    init(code: Int32) {
        let error = SystemCallError(call: "read", code: code)
        let isMissing = code == ENOENT || code == ENOTDIR
        self.init("cannot be read: \(error.reason)", isMissing: isMissing, mayPass: error.mayPass)
    }
}

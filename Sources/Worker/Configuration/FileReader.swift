import Base
import Crypto
private import Glibc

/// The access to files.
package struct FileReader: Sendable {
    /// The reason why a file could not be read, for the user.
    package struct Failure: Error, Equatable, Sendable {
        package let reason: String
        /// `true` if the file does not exist, which is not a failure for an optional file.
        let isMissing: Bool
        /// `true` if the same call may succeed later without a change by the operator.
        var mayPass = false
    }

    package let read: @Sendable (_ path: String) throws(Failure) -> [UInt8]
    /// Reads a file that holds a secret, and refuses it if other users may read it.
    let readPrivate: @Sendable (_ path: String) throws(Failure) -> Secret
    package let exists: @Sendable (_ path: String) -> Bool
}

extension FileReader {
    /// Much larger than any configuration, so that a wrong path to a database or a device does not fill the memory.
    private static let sizeLimit = 1 << 20

    /// The files of the machine.
    ///
    /// Reads block, so use this only at the start and on the thread that reloads.
    package static let system = system(timeout: .seconds(5))

    /// Returns a reader that also reads pipes, `--config <(command)`, and waits up to `timeout` for each piece of
    /// them.
    static func system(timeout: Duration) -> FileReader {
        FileReader(
            read: { path throws(Failure) in try readWhole(path, timeout: timeout) },
            readPrivate: { path throws(Failure) in
                do throws(SecretFileError) {
                    return try Secret.read(privateFile: path)
                } catch {
                    throw Failure(reason: "\(error)", isMissing: false, mayPass: error.mayPass)
                }
            },
            exists: { path in unsafe access(path, F_OK) == 0 }
        )
    }

    private static func readWhole(_ path: String, timeout: Duration) throws(Failure) -> [UInt8] {
        // Opened without blocking, because a pipe without a writer would never open.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw Failure(code: errno) }
        defer { close(descriptor) }
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            try waitForData(descriptor, timeout)
            let count = unsafe Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0 && (errno == EINTR || errno == EAGAIN) { continue }
            guard count >= 0 else { throw Failure(code: errno) }
            guard count > 0 else { return content }
            content += buffer.prefix(count)
            guard content.count <= sizeLimit else {
                throw Failure(reason: "is larger than 1 MiB", isMissing: false)
            }
        }
    }
}

extension FileReader {
    /// Waits until there is data to read, or the end.
    ///
    /// A regular file is always ready.
    private static func waitForData(_ descriptor: Int32, _ timeout: Duration) throws(Failure) {
        var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        var ready: Int32
        repeat {
            ready = unsafe poll(&request, 1, Int32(clamping: timeout.wholeMilliseconds))
        } while ready < 0 && errno == EINTR
        guard ready == 0 else { return }
        let seconds = timeout.components.seconds
        throw Failure(reason: "is a pipe that nothing was written to for \(seconds) s", isMissing: false)
    }
}

extension FileReader.Failure {
    init(code: Int32) {
        let error = SystemCallError(call: "read", code: code)
        self.init(
            reason: "cannot be read: \(error.reason)",
            isMissing: code == ENOENT,
            mayPass: error.mayPass
        )
    }
}

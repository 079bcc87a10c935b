import Foundation
import Glibc
import Synchronization

/// A program that a test starts, with its output in a pipe.
///
/// Foundation's `Process` would pass on the signal mask of the calling thread, and threads of the cooperative pool
/// block the signals that end a server. When very many files are open it also reads beyond the end of a listing of
/// `/proc/self/fd`, which AddressSanitizer reports.
package final class ChildProcess {
    package struct Failure: Error {
        let message: String

        package init(message: String) { self.message = message }
    }

    private let identifier: Int32
    private let output: Int32

    package init(_ program: String, _ arguments: [String]) throws {
        (identifier, output) = try Self.starting.withLock { _ in try Self.start(program, arguments) }
    }

    /// One program starts at a time: it would inherit the pipe of another that starts, and so keep it open.
    private static let starting = Mutex(())

    private static func start(_ program: String, _ arguments: [String]) throws -> (identifier: Int32, output: Int32) {
        var pipe: [Int32] = [0, 0]
        guard Glibc.pipe(&pipe) == 0 else { throw Failure(message: "pipe failed with errno \(errno)") }
        defer { close(pipe[1]) }
        for descriptor in pipe { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, pipe[1], 1)
        posix_spawn_file_actions_adddup2(&actions, pipe[1], 2)
        var words = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var child = pid_t()
        let result = posix_spawn(&child, program, &actions, nil, &words, environ)
        guard result == 0 else {
            close(pipe[0])
            throw Failure(message: "\(program) was not started: errno \(result)")
        }
        return (child, pipe[0])
    }

    deinit { close(output) }

    /// Reads until the output contains a text and the end of its line, and returns that output; throws the output if
    /// it ends before.
    ///
    /// A thread continues to read, because a full pipe would stop the program.
    @discardableResult
    package func waitForLine(with text: String) throws -> String {
        var read = ""
        while !(read.contains(text) && read.hasSuffix("\n")) {
            guard let more = readOutput() else { throw Failure(message: read) }
            read += more
        }
        let output = dup(output)
        Thread.detachNewThread {
            var chunk = [UInt8](repeating: 0, count: 4096)
            while Glibc.read(output, &chunk, chunk.count) > 0 {}
            close(output)
        }
        return read
    }

    /// Waits for the end and returns the output; throws the output if the program failed.
    @discardableResult
    package func waitForSuccess() throws -> String {
        var read = ""
        while let more = readOutput() { read += more }
        var status: Int32 = 0
        guard waitpid(identifier, &status, 0) == identifier, status == 0 else { throw Failure(message: read) }
        return read
    }

    package func kill() {
        Glibc.kill(identifier, SIGKILL)
        waitpid(identifier, nil, 0)
    }

    private func readOutput() -> String? {
        var chunk = [UInt8](repeating: 0, count: 4096)
        let count = read(output, &chunk, chunk.count)
        return count > 0 ? String(decoding: chunk[..<count], as: UTF8.self) : nil
    }
}

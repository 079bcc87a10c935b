import Base
import CProcess
import Crypto
import Glibc

/// A program that runs, and what it has printed so far.
///
/// Its owner is the only one that waits for it. When the owner is destroyed, the program and every process of its group
/// have been killed.
struct RunningCommand: ~Copyable {
    /// The name of the call whose failure means that the program cannot be run.
    static let startCall = "posix_spawn"

    private let process: pid_t
    /// Readable once the program has ended.
    private let end: Descriptor
    private let outputPipe: Descriptor
    private let errorPipe: Descriptor
    private var isOutputOpen = true
    private var isErrorOpen = true
    private var isReaped = false

    private(set) var output = ErasedBytes()
    /// The end of what the program wrote to standard error.
    private(set) var errorOutput: [UInt8] = []

    /// Starts a program. It reads the input to its end, or nothing.
    init(_ command: ExternalCommand, input: Secret?, environment: [String: String]) throws(SystemCallError) {
        let inputFile = try Self.inputFile(holding: input)
        let outputEnds = try Descriptor.pipe()
        let errorEnds = try Descriptor.pipe()
        let started = try Self.start(
            command.words,
            environment: environment.map { "\($0.key)=\($0.value)" },
            input: inputFile.number,
            output: outputEnds.writing.number,
            error: errorEnds.writing.number
        )
        let watched = refresh_worker_watch(started)
        guard watched >= 0 else {
            let error = SystemCallError(call: "pidfd_open", code: errno)
            Self.killGroup(of: started)
            _ = Self.reap(started)
            throw error
        }
        process = started
        end = Descriptor(owning: watched)
        outputPipe = outputEnds.reading
        errorPipe = errorEnds.reading
    }

    deinit {
        guard !isReaped else { return }
        Self.killGroup(of: process)
        _ = Self.reap(process)
    }

    /// Reads until the program has ended, and returns why it failed, or `nil` if it printed something and succeeded.
    ///
    /// After a failure it might still run, until its owner is destroyed.
    mutating func finish(within limits: ExternalCommand.Limits) -> ExternalCommandError.Reason? {
        let clock = SystemTime()
        let deadline = clock.sinceBoot + limits.time
        while true {
            let left = deadline - clock.sinceBoot
            guard left > .zero else { return .tooSlow(limit: limits.time) }
            let hasEnded: Bool
            do throws(SystemCallError) {
                hasEnded = try waitForEvent(atMost: left)
                // First, because a child that still has the pipes open could print for ever.
                if hasEnded { Self.killGroup(of: process) }
                try readOutput(atMost: limits.output + 1)
                try readErrorOutput()
            } catch {
                return .systemCall(error)
            }
            guard output.count <= limits.output else { return .tooMuchOutput(limit: limits.output) }
            guard hasEnded else { continue }
            isReaped = true
            let status = Self.reap(process)
            if let reason = Self.failure(ofStatus: status) { return reason }
            return output.count == 0 ? .noOutput : nil
        }
    }

    /// Waits until there is something to read, or the program has ended. Returns `true` if it has ended.
    private func waitForEvent(atMost span: Duration) throws(SystemCallError) -> Bool {
        // A negative number is skipped.
        var events = [
            pollfd(fd: end.number, events: Int16(POLLIN), revents: 0),
            pollfd(fd: isOutputOpen ? outputPipe.number : -1, events: Int16(POLLIN), revents: 0),
            pollfd(fd: isErrorOpen ? errorPipe.number : -1, events: Int16(POLLIN), revents: 0),
        ]
        let milliseconds = Int32(clamping: max(1, span.wholeMilliseconds))
        let count = unsafe poll(&events, nfds_t(events.count), milliseconds)
        guard count >= 0 || errno == EINTR else { throw SystemCallError(call: "poll", code: errno) }
        return events[0].revents != 0
    }

    /// Linux's pipes hold 64 KiB (pipe(7)).
    private static let chunksInPipe = 16

    private mutating func readOutput(atMost limit: Int) throws(SystemCallError) {
        var chunk = [UInt8](repeating: 0, count: 4096)
        defer { unsafe chunk.withUnsafeMutableBytes { unsafe ErasedBytes.wipe($0) } }
        while isOutputOpen, output.count < limit {
            guard let count = try Self.read(outputPipe.number, into: &chunk) else { return }
            isOutputOpen = count > 0
            unsafe output.append(chunk.span.bytes.extracting(0..<count))
        }
    }

    /// Reads as much as a pipe holds, and no more: a program that writes without end must not keep this from its deadline.
    private mutating func readErrorOutput() throws(SystemCallError) {
        var chunk = [UInt8](repeating: 0, count: 4096)
        for _ in 0..<Self.chunksInPipe where isErrorOpen {
            guard let count = try Self.read(errorPipe.number, into: &chunk) else { return }
            isErrorOpen = count > 0
            errorOutput = (errorOutput + chunk[..<count]).suffix(ShownErrorOutput.keptBytes)
        }
    }

    /// Returns the number of bytes read, which is 0 at the end, or `nil` if there is nothing to read yet.
    private static func read(_ descriptor: Int32, into chunk: inout [UInt8]) throws(SystemCallError) -> Int? {
        let count = unsafe Glibc.read(descriptor, &chunk, chunk.count)
        guard count < 0 else { return count }
        guard errno == EAGAIN || errno == EINTR else { throw SystemCallError(call: "read", code: errno) }
        return nil
    }
}

extension RunningCommand {
    /// Returns a file in memory with the secret, so that no thread has to write into a pipe while another one reads. It
    /// has no name, and vanishes with its last descriptor.
    private static func inputFile(holding input: Secret?) throws(SystemCallError) -> Descriptor {
        guard let input else {
            return try Descriptor(unsafe open("/dev/null", O_RDONLY | O_CLOEXEC), of: "open of /dev/null")
        }
        let file = try Descriptor(refresh_worker_memory_file(), of: "memfd_create")
        let number = file.number
        let written = input.withBytes { span in
            unsafe span.withUnsafeBytes { bytes in unsafe write(number, bytes.baseAddress, bytes.count) }
        }
        guard written == input.count else { throw SystemCallError(call: "write", code: written < 0 ? errno : ENOSPC) }
        guard lseek(number, 0, SEEK_SET) == 0 else { throw SystemCallError(call: "lseek", code: errno) }
        return file
    }

    private static func start(
        _ words: [String],
        environment: [String],
        input: Int32,
        output: Int32,
        error: Int32
    ) throws(SystemCallError) -> pid_t {
        var arguments = unsafe words.map { unsafe strdup($0) } + [nil]
        var variables = unsafe environment.sorted().map { unsafe strdup($0) } + [nil]
        defer { unsafe (arguments + variables).forEach { unsafe free($0) } }
        var process = pid_t()
        let code = unsafe refresh_worker_spawn(&process, &arguments, &variables, input, output, error)
        guard code == 0 else { throw SystemCallError(call: startCall, code: code) }
        return process
    }

    /// Kills the program and its children. The number of the group stays taken until the program is reaped.
    private static func killGroup(of process: pid_t) { kill(-process, SIGKILL) }

    /// Waits for the end of the program, and returns its status.
    private static func reap(_ process: pid_t) -> Int32 {
        var status: Int32 = 0
        while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status
    }

    /// Reads the status of a program that has ended (https://man7.org/linux/man-pages/man2/wait.2.html). C's macros for
    /// it are not visible in Swift.
    private static func failure(ofStatus status: Int32) -> ExternalCommandError.Reason? {
        let signal = status & 0x7f
        guard signal == 0 else { return .killed(signal: signal) }
        let code = (status >> 8) & 0xff
        return code == 0 ? nil : .exited(code: code)
    }
}

private import Glibc

/// Standard output and standard error, written at once and without a buffer that could be lost.
struct Output: Sendable {
    static let standard = Output(descriptor: STDOUT_FILENO)
    static let error = Output(descriptor: STDERR_FILENO)

    private let descriptor: Int32

    /// Whether a person is looking.
    var isTerminal: Bool { isatty(descriptor) == 1 }

    func line(_ text: String) {
        write(text + "\n")
    }

    func line(_ bytes: [UInt8]) {
        write(bytes + [UInt8(ascii: "\n")])
    }

    func write(_ text: String) {
        write(Array(text.utf8))
    }

    /// Writes all of it; a reader that went away ends the program, as it would end `cat`, and any other failure does with
    /// its reason.
    private func write(_ bytes: [UInt8]) {
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.write(descriptor, buffer.baseAddress.map { unsafe $0 + written }, bytes.count - written)
            }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { end(errno) }
            written += count
        }
    }

    private func end(_ reason: Int32) -> Never {
        if descriptor != STDERR_FILENO, reason != EPIPE {
            let text = unsafe String(cString: strerror(reason))
            Self.error.line("refresh-worker: cannot write to standard output: \(text)")
        }
        exit(ExitCode.inputOutput.rawValue)
    }
}

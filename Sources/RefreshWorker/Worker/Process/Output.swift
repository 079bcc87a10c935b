import Glibc

/// Standard output and standard error, written immediately and unbuffered, so that no output is lost at exit.
struct Output: Sendable {
    static let standard = Output(descriptor: STDOUT_FILENO)
    static let error = Output(descriptor: STDERR_FILENO)

    private let descriptor: Int32

    var isTerminal: Bool { isatty(descriptor) == 1 }

    /// The width of the terminal in columns, or `nil` if the output is not a terminal.
    var width: Int? {
        guard isTerminal else { return nil }
        var size = winsize()
        // A terminal whose size is unknown, such as a serial line, has no columns.
        guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }

    func line(_ text: String) {
        write(text + "\n")
    }

    func line(_ bytes: [UInt8]) {
        write(bytes + [UInt8(ascii: "\n")])
    }

    func write(_ text: String) {
        write(Array(text.utf8))
    }

    /// Writes all bytes.
    ///
    /// If the reader has gone, it ends the program silently, as `cat` does. It reports any other failure.
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

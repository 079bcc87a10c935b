import Synchronization

/// A line of standard error that is overwritten on each update, if that is a terminal.
final class TerminalProgress: Sendable {
    /// Moves to the first column and erases the rest of the line
    /// (https://man7.org/linux/man-pages/man4/console_codes.4.html).
    private static let eraseLine = "\r\u{1b}[K"

    private let output = Output.error
    private let isShown = Mutex(false)

    func show(_ text: String) {
        guard output.isTerminal else { return }
        isShown.withLock { isShown in
            output.write(Self.eraseLine + text)
            isShown = true
        }
    }

    /// Erases the line before a permanent line is written.
    func clear() {
        isShown.withLock { isShown in
            if isShown { output.write(Self.eraseLine) }
            isShown = false
        }
    }
}

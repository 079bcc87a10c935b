private import Synchronization

/// One line on a terminal that is written over again and again; nothing at all where no person is looking.
final class TerminalProgress: Sendable {
    /// Back to the first column, and everything behind it erased
    /// (https://man7.org/linux/man-pages/man4/console_codes.4.html).
    private static let eraseLine = "\r\u{1b}[K"

    private let output: Output
    private let isShown = Mutex(false)

    init(to output: Output) {
        self.output = output
    }

    func show(_ text: String) {
        guard output.isTerminal else { return }
        isShown.withLock { isShown in
            output.write(Self.eraseLine + text)
            isShown = true
        }
    }

    /// Makes room for a line that stays.
    func clear() {
        isShown.withLock { isShown in
            if isShown { output.write(Self.eraseLine) }
            isShown = false
        }
    }
}

/// A failed command: the message to print and the exit code.
struct CommandFailure: Error, Equatable, Sendable, CustomStringConvertible {
    let exitCode: ExitCode
    let message: String

    var description: String { message }

    init(_ exitCode: ExitCode, _ message: String) {
        self.exitCode = exitCode
        self.message = message
    }
}

/// A failed command: the message to print and the exit code.
package struct CommandFailure: Error, Equatable, Sendable, CustomStringConvertible {
    package let exitCode: ExitCode
    package let message: String

    package var description: String { message }

    package init(_ exitCode: ExitCode, _ message: String) {
        self.exitCode = exitCode
        self.message = message
    }
}

/// The problems of a command line, and the command whose help explains it.
package struct UsageError: Error, Equatable, Sendable {
    let problems: [String]
    /// The command whose help to name, as it is typed.
    let invocation: String

    package var exitCode: ExitCode { .usage }
}

extension UsageError: CustomStringConvertible {
    /// One line for each problem, and one that points to the help; without secrets.
    package var description: String {
        (problems + ["'\(invocation) --help' explains it."]).joined(separator: "\n")
    }
}

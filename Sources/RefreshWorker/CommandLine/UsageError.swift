/// What is wrong with a command line, and which help explains it better.
struct UsageError: Error, Equatable, Sendable {
    let problems: [String]
    /// The command whose help to name, as it is typed.
    let invocation: String

    var exitCode: ExitCode { .usage }
}

extension UsageError: CustomStringConvertible {
    /// One line for each problem and one that points at the help, free of secrets.
    var description: String {
        (problems + ["'\(invocation) --help' explains it."]).joined(separator: "\n")
    }
}

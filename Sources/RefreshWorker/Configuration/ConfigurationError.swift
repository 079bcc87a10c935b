/// Everything that is wrong with the configuration, found in one go so that it can be mended in one go.
struct ConfigurationError: Error, Equatable, Sendable {
    /// One mistake and where it stands.
    struct Problem: Equatable, Sendable, CustomStringConvertible {
        /// Where the mistake stands: a flag, a variable, `file:line` or a credential.
        let origin: String
        let message: String

        var description: String { "\(origin): \(message)" }
    }

    let problems: [Problem]

    var exitCode: ExitCode { .configuration }
}

extension ConfigurationError: CustomStringConvertible {
    /// One line for each problem, free of secrets.
    var description: String {
        problems.map(\.description).joined(separator: "\n")
    }
}

/// All problems of the configuration, so that they can be fixed in one go.
struct ConfigurationError: Error, Equatable, Sendable {
    /// One mistake and its place.
    struct Problem: Equatable, Sendable, CustomStringConvertible {
        /// The place of the mistake: a flag, a variable, `file:line` or a credential.
        let origin: String
        let message: String

        var description: String { "\(origin): \(message)" }
    }

    let problems: [Problem]

    var exitCode: ExitCode { .configuration }
}

extension ConfigurationError: CustomStringConvertible {
    /// One line for each problem; without secrets.
    var description: String {
        problems.map(\.description).joined(separator: "\n")
    }
}

/// Everything that is wrong with the configuration, found in one go so that it can be mended in one go.
struct ConfigurationError: Error, Equatable, Sendable {
    /// One mistake and where it stands.
    struct Problem: Equatable, Sendable, CustomStringConvertible {
        /// Where the mistake stands: a flag, a variable, `file:line` or a credential.
        let origin: String
        let message: String
        /// `true` if a file could not be read for now.
        var mayPass = false

        var description: String { "\(origin): \(message)" }
    }

    let problems: [Problem]

    /// After a file that could not be read for now, the settings that are missing may be in it.
    var exitCode: ExitCode { problems.contains(where: \.mayPass) ? .inputOutput : .configuration }
}

extension ConfigurationError: CustomStringConvertible {
    /// One line for each problem, free of secrets.
    var description: String {
        problems.map(\.description).joined(separator: "\n")
    }
}

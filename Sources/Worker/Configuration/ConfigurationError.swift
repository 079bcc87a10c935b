/// All problems of the configuration, so that they can be fixed in one go.
package struct ConfigurationError: Error, Equatable, Sendable {
    /// One mistake and its origin.
    package struct Problem: Equatable, Sendable, CustomStringConvertible {
        /// The origin of the mistake: a flag, a variable, `file:line` or a credential.
        package let origin: String
        package let message: String
        /// `true` if a file could not be read for a reason that may pass.
        var mayPass = false

        package var description: String { "\(origin): \(message)" }
    }

    package let problems: [Problem]

    /// After a file that could not be read, the settings that are missing may be in it.
    package var exitCode: ExitCode { problems.contains(where: \.mayPass) ? .inputOutput : .configuration }
}

extension ConfigurationError: CustomStringConvertible {
    /// One line for each problem; without secrets.
    package var description: String {
        problems.map(\.description).joined(separator: "\n")
    }
}

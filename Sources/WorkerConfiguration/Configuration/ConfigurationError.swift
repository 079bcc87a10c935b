/// All problems of the configuration, so that they can be fixed in one go.
package struct ConfigurationError: Error, Equatable, Sendable {
    /// One mistake and its place.
    struct Problem: Equatable, Sendable, CustomStringConvertible {
        /// The place of the mistake: a flag, a variable, `file:line` or a credential.
        let origin: String
        let message: String
        /// `true` if a file could not be read for now.
        var mayPass = false

        var description: String { "\(origin): \(message)" }
    }

    let problems: [Problem]

    /// After a file that could not be read for now, the settings that are missing may be in it.
    package var exitCode: ExitCode { problems.contains(where: \.mayPass) ? .inputOutput : .configuration }
}

extension ConfigurationError: CustomStringConvertible {
    /// One line for each problem; without secrets.
    package var description: String {
        problems.map(\.description).joined(separator: "\n")
    }
}

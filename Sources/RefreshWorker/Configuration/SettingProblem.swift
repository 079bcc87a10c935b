extension Setting {
    /// One mistake and its origin.
    struct Problem: Equatable, Sendable {
        /// The origin of the mistake: a flag, a variable, `file:line` or a credential.
        let origin: String
        let message: String
        /// `true` if a file could not be read for a reason that might pass.
        var mayPass = false
        /// `true` if it is about a value on the command line.
        var isOfArgument = false
    }
}

extension CommandError {
    /// Reports all problems of the configuration, so that they can be fixed in one go: a line each, without secrets.
    ///
    /// After a file that could not be read for now, the settings that are missing might be in it. A bad value on the
    /// command line has the same code for a setting as for a flag of one command.
    init?(_ problems: [Setting.Problem]) {
        guard !problems.isEmpty else { return nil }
        let code: ExitCode
        if problems.contains(where: \.mayPass) {
            code = .inputOutput
        } else if problems.allSatisfy(\.isOfArgument) {
            code = .usage
        } else {
            code = .configuration
        }
        self.init(
            code,
            problems.map { "\($0.origin): \($0.message)" }.joined(separator: "\n")
        )
    }
}

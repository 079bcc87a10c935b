/// The name, arguments and purpose of a command.
///
/// The parser and the help both read it, so that they cannot differ.
package struct CommandSpecification: Sendable {
    /// An example command line and its purpose.
    struct Example: Sendable {
        let line: String
        let purpose: String
    }

    /// Makes the command from its parsed arguments.
    typealias Maker = @Sendable (CommandArguments) -> Command

    /// The words that name the command; empty for the program itself.
    let words: [String]
    let summary: String
    /// Paragraphs of explanation.
    let discussion: [String]
    var operands: [OperandSpecification] = []
    var options: [OptionSpecification] = []
    /// The settings that matter to the command.
    ///
    /// The others are accepted too, so that a wrapper can always pass the same flags.
    var settings: [Setting.Name] = []
    var examples: [Example] = []
    var exitCodes: [ExitCode] = []
    var subcommands: [CommandSpecification] = []
    /// Returns the problems of operands and flags that are valid one by one but not together.
    var problems: @Sendable (CommandArguments) -> [String] = { _ in [] }
    /// `nil` for a group, which does nothing without one of its subcommands.
    var make: Maker?

    /// The command as it is typed.
    var invocation: String {
        (["refresh-worker"] + words).joined(separator: " ")
    }

    /// The command and all commands below it.
    var tree: [CommandSpecification] {
        [self] + subcommands.flatMap(\.tree)
    }
}

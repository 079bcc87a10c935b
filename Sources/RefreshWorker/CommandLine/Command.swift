/// A command of the program: its arguments, its help, and what it does.
///
///     extension Command {
///         static let showUser = Command(words: ["users", "show"], …) { arguments, context, output in
///             let id = arguments.operand
///             …
///         }
///     }
///
/// The parser and the help read the same specification, so that they cannot differ. A new command is added to the list
/// in ``Command/program``.
struct Command: Sendable {
    /// The words that name the command, or none for the program itself.
    let words: [String]
    let summary: String
    /// The explanation, with an empty line between paragraphs.
    let discussion: String
    var operands: [OperandSpecification] = []
    var options: [OptionSpecification] = []
    /// The settings that matter to the command. The others are accepted too, so that a wrapper can always pass the same
    /// flags. Root checks the files that these name (`Installation.swift`).
    var settings: [Setting.Name] = []
    /// Command lines, each with its purpose.
    var examples: KeyValuePairs<String, String> = [:]
    var exitCodes: [ExitCode] = [.usage]
    var subcommands: [Command] = []
    /// Refuses arguments that are valid one by one but not together.
    var check: @Sendable (CommandArguments) throws(CommandError) -> Void = { _ in }
    /// For a command that only prints a text, such as `version`: it runs without the configuration.
    var text: (@Sendable (CommandArguments) -> String)?
    /// Does the work. A command that only prints a text has none, nor has a group of subcommands.
    let run: (@Sendable (CommandArguments, CommandContext, CommandOutput) async throws -> ExitCode)?

    var isGroup: Bool { run == nil && text == nil }

    /// `true` unless the command does without settings.
    var readsConfiguration: Bool { run != nil && !settings.isEmpty }

    /// The help of `--no-switch`, which every command with settings has.
    static let noSwitchSummary = "as root: do not continue as the user refresh-worker, and trust whoever owns the files"

    var paragraphs: [String] { discussion.split(separator: "\n\n").map(String.init) }

    /// The command as it is typed.
    var invocation: String {
        (["refresh-worker"] + words).joined(separator: " ")
    }

    /// The command and all commands below it.
    var tree: [Command] {
        [self] + subcommands.flatMap(\.tree)
    }
}

import Base
import Storage

/// A command of the program: its arguments, its help, and what it does.
///
///     extension Command {
///         static let showUser = Command(words: ["users", "show"], …) { arguments, context in
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
    /// The settings that matter to the command.
    ///
    /// The others are accepted too, so that a wrapper can always pass the same flags.
    var settings: [Setting.Name] = []
    /// Command lines, each with its purpose.
    var examples: KeyValuePairs<String, String> = [:]
    var exitCodes: [ExitCode] = [.usage]
    var subcommands: [Command] = []
    /// Refuses arguments that are valid one by one but not together.
    var check: @Sendable (CommandArguments) throws(CommandError) -> Void = { _ in }
    /// The text of a command that only prints one, and needs neither the configuration nor a thread for it.
    var text: (@Sendable (CommandArguments) -> String)?
    /// Does the work.
    ///
    /// A command that only prints a text has none, nor has a group of subcommands.
    let run: (@Sendable (CommandArguments, CommandContext) async throws -> ExitCode)?

    var isGroup: Bool { run == nil && text == nil }

    /// `true` unless the command does without settings.
    var readsConfiguration: Bool { run != nil && !settings.isEmpty }

    /// The effect of the flag that each of these commands has.
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

extension CommandContext {
    func run(_ arguments: CommandArguments) async throws -> ExitCode {
        guard arguments.text == nil, let run = arguments.command.run else {
            Output.standard.write(arguments.text ?? "")
            return .success
        }
        do {
            return try await run(arguments, self)
        } catch let error as StoreError {
            throw await Self.confirmed(error)
        }
    }

    /// `true` if the result is for a terminal whose user has not refused colours.
    var printsColours: Bool {
        let isPlain = !(inputs.environment["NO_COLOR"] ?? "").isEmpty  // https://no-color.org
        return Output.standard.isTerminal && !isPlain
    }

    /// Prints the result of a command: one JSON object with `--json`, otherwise a text.
    func answer(_ text: @autoclosure () -> String, json write: (inout JSONLine) -> Void) {
        guard printsJSON else { return Output.standard.line(text()) }
        var line = JSONLine()
        write(&line)
        Output.standard.line(line.bytes)
    }
}

/// A word that a command needs after its name.
struct OperandSpecification: Sendable {
    let placeholder: String
    let summary: String
    /// The limit of the value in bytes.
    let maximumLength: Int
    /// `true` if a flag can replace the operand, which ``Command/check`` decides.
    var isOptional = false

    static func user(_ summary: String, isOptional: Bool = false) -> OperandSpecification {
        OperandSpecification(placeholder: "USER", summary: summary, maximumLength: 1024, isOptional: isOptional)
    }

    static func file(_ summary: String) -> OperandSpecification {
        OperandSpecification(placeholder: "FILE", summary: summary, maximumLength: InputText.maximumLength)
    }

    static func service(_ summary: String) -> OperandSpecification {
        OperandSpecification(placeholder: "SERVICE", summary: summary, maximumLength: 64)
    }

    static func keyID(_ summary: String) -> OperandSpecification {
        OperandSpecification(placeholder: "ID", summary: summary, maximumLength: 128)
    }

    /// Returns the reason why a value is invalid.
    func problem(with value: String) -> String? {
        guard !value.isEmpty else { return "\(placeholder) is empty" }
        guard value.utf8.count <= maximumLength else {
            return "\(placeholder) has \(value.utf8.count) bytes; at most \(maximumLength) are allowed"
        }
        guard !value.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            return "\(placeholder) contains control characters"
        }
        return nil
    }
}

extension [ExitCode] {
    /// Returns the codes of every command that opens the database, and the others of a command, in their order.
    static func ofDatabase(_ others: ExitCode...) -> [ExitCode] {
        let usual: [ExitCode] = [.success, .usage, .internalFailure, .inputOutput, .leftForLater, .configuration]
        return (usual + others).sorted { $0.rawValue < $1.rawValue }
    }
}

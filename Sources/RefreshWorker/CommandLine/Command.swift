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
    var exitCodes: [ExitCode] = []
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

    /// `true` if the command reads or writes files that belong to the service's user.
    var usesServiceFiles: Bool {
        let files: [Setting.Name] = [.database, .keyFile, .servicesFile, .noticeSecretFile]
        return run != nil && (settings.contains(where: files.contains) || options.contains(where: \.isDatabase))
    }

    /// The effect of the flag that each of these commands has.
    static let noSwitchSummary = "as root: do not continue as the user refresh-worker"

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
    func run(_ invocation: Invocation) async throws -> ExitCode {
        guard invocation.text == nil, let run = invocation.arguments.command.run else {
            Output.standard.write(invocation.text ?? "")
            return .success
        }
        do {
            return try await run(invocation.arguments, self)
        } catch let error as StoreError {
            throw await Self.confirmed(error)
        }
    }

    /// Prints the result of a command: one JSON object with `--json`, otherwise a text.
    func answer(_ text: @autoclosure () -> String, json write: (inout JSONLine) -> Void) {
        guard printsJSON else { return Output.standard.line(text()) }
        var line = JSONLine()
        write(&line)
        Output.standard.line(line.bytes)
    }

    /// Creates the report of this process to the workers on the database.
    func heartbeat(in store: any Store, of vault: TokenVault) -> WorkerHeartbeat {
        WorkerHeartbeat(store: store, ring: vault.ring, workerName: workerName, diagnostics: diagnostics)
    }
}

/// A flag of one command.
struct OptionSpecification: Sendable {
    /// The kind of value that a flag takes.
    enum Kind: Sendable {
        case toggle
        case choice([String], as: String)
        case seconds(ClosedRange<Int>)
        /// A time span with its unit, such as 24h.
        case span
        case number(ClosedRange<Int>)
        case file
        case clientID
        case user
        case email
        case endpoint
        case database
        /// A text of letters, digits and these signs, shown in the help as the placeholder.
        case text(as: String, maximumLength: Int, signs: String)
    }

    let name: String
    let kind: Kind
    let summary: String
    /// The end of the message about a flag that is needed and missing, or `nil` if it can be left out.
    let need: String?
    /// The value of a flag that is not given.
    let standard: String?

    init(_ name: String, _ kind: Kind, _ summary: String, need: String? = nil, standard: String? = nil) {
        self.name = name
        self.kind = kind
        self.summary = summary
        self.need = need
        self.standard = standard
    }

    fileprivate var isDatabase: Bool { if case .database = kind { true } else { false } }

    /// The placeholder for the value in the help, or `nil` if the flag does not take a value.
    var placeholder: String? {
        switch kind {
        case .toggle: nil
        case .choice(_, let placeholder): placeholder
        case .seconds: "SECONDS"
        case .span: "SPAN"
        case .number: "N"
        case .file: "FILE"
        case .clientID: "ID"
        case .user: "USER"
        case .email: "ADDRESS"
        case .endpoint: "URL"
        case .database: "PLACE"
        case .text(let placeholder, _, _): placeholder
        }
    }

    /// The flag with the placeholder of its value, as the help shows it.
    var usage: String { "--\(name)" + (placeholder.map { " " + $0 } ?? "") }

    /// The message if the flag is needed and not given.
    var missing: String? { need.map { "--\(name) is needed\($0)" } }

    /// Returns the reason why a value is invalid.
    func problem(with value: String) -> String? {
        do throws(InputError) {
            switch kind {
            case .toggle:
                break
            case .choice(let choices, _):
                guard !choices.contains(value) else { break }
                let hint = NameSuggestion.hint(value, among: choices)
                return "--\(name): \(DisplayedText(value)) is not one of \(choices.joined(separator: ", "))\(hint)"
            case .seconds(let range):
                _ = try SettingValue.seconds(value, in: range)
            case .span:
                _ = try SettingValue.span(value)
            case .number(let range):
                guard let number = Int(value), range.contains(number) else {
                    let limits = "\(range.lowerBound) to \(range.upperBound)"
                    return "--\(name): \(DisplayedText(value)) is not a whole number from \(limits)"
                }
            case .file, .database:
                try InputText.checkText(value)
            case .clientID:
                _ = try InputText.clientID(value)
            case .user:
                return OperandSpecification.user("").problem(with: value)
            case .email:
                try InputText.checkText(value)
                guard value.contains("@") else { return "--\(name): \(DisplayedText(value)) is not an e-mail address" }
            case .endpoint:
                _ = try SettingValue.endpoint(value)
            case .text(_, let maximumLength, let signs):
                let isAllowed = value.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) || signs.contains($0) }
                guard isAllowed, (1...maximumLength).contains(value.utf8.count) else {
                    let rule = "up to \(maximumLength) letters, digits and \(signs)"
                    return "--\(name): \(DisplayedText(value)) is not \(rule)"
                }
            }
            return nil
        } catch {
            return "--\(name): \(error.message)"
        }
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

    static func file(_ summary: String, isOptional: Bool = false) -> OperandSpecification {
        OperandSpecification(
            placeholder: "FILE",
            summary: summary,
            maximumLength: InputText.maximumLength,
            isOptional: isOptional
        )
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

/// The options that several commands have.
extension OptionSpecification {
    /// `--json`, of commands that print records.
    static let json = toggle("json", "JSON, one object a line, instead of text; never a token")
    /// `--json`, of commands that print one result.
    static let jsonObject = toggle("json", "one JSON object instead of text")
    /// `--json`, of imports.
    static let jsonSummary = toggle("json", "the numbers at the end as a JSON object on standard output")

    /// `--email ADDRESS`, which selects users or grants.
    static func email(_ whose: String) -> OptionSpecification {
        OptionSpecification("email", .email, "only \(whose) with this e-mail address, in upper or lower case")
    }

    /// `--dry-run`, of commands that change what cannot be restored.
    static let dryRun = toggle("dry-run", "change nothing and say what would be done")
    /// `--yes`, of commands that ask on a terminal.
    static let yes = toggle("yes", "do not ask; without a terminal no question is asked")

    static func toggle(_ name: String, _ summary: String) -> OptionSpecification {
        OptionSpecification(name, .toggle, summary)
    }

    /// `--client ID`, which selects grants, unlike the setting `--client-id`.
    static func client(_ summary: String) -> OptionSpecification {
        OptionSpecification("client", .clientID, summary)
    }
}

import Worker

/// The name, arguments and purpose of a command.
///
/// The parser and the help both read it, so that they cannot differ.
package struct CommandSpecification: Sendable {
    /// An example command line and its purpose.
    struct Example: Sendable {
        let line: String
        let purpose: String

        init(_ line: String, _ purpose: String) {
            self.line = line
            self.purpose = purpose
        }
    }

    /// The words that name the command; empty for the program itself.
    let words: [String]
    let summary: String
    /// The explanation; an empty line separates paragraphs.
    let discussion: String
    var operands: [OperandSpecification] = []
    var options: [OptionSpecification] = []
    /// The settings that matter to the command.
    ///
    /// The others are accepted too, so that a wrapper can always pass the same flags.
    var settings: [Setting.Name] = []
    var examples: [Example] = []
    var exitCodes: [ExitCode] = []
    var subcommands: [CommandSpecification] = []
    /// Makes the command; `nil` for a group, which does nothing without one of its subcommands.
    var make: (@Sendable (CommandArguments) throws(UsageError) -> any Command)?

    var paragraphs: [String] { discussion.split(separator: "\n\n").map(String.init) }

    /// The command as it is typed.
    var invocation: String {
        (["refresh-worker"] + words).joined(separator: " ")
    }

    /// The command and all commands below it.
    var tree: [CommandSpecification] {
        [self] + subcommands.flatMap(\.tree)
    }
}

/// A flag of one command.
struct OptionSpecification: Sendable {
    /// The kind of value that a flag takes.
    enum Kind: Sendable {
        case toggle
        case choice([String], as: String)
        case seconds(ClosedRange<Int>)
        case number(ClosedRange<Int>)
        case file
        case clientID
        case user
        case endpoint
        case database
        /// A text of these characters; the help shows the placeholder.
        case text(as: String, AllowedText)
    }

    let name: String
    let kind: Kind
    let summary: String

    init(_ name: String, _ kind: Kind, _ summary: String) {
        self.name = name
        self.kind = kind
        self.summary = summary
    }

    /// The placeholder for the value in the help; `nil` if the flag does not take a value.
    var placeholder: String? {
        switch kind {
        case .toggle: nil
        case .choice(_, let placeholder): placeholder
        case .seconds: "SECONDS"
        case .number: "N"
        case .file: "FILE"
        case .clientID: "ID"
        case .user: "USER"
        case .endpoint: "URL"
        case .database: "PLACE"
        case .text(let placeholder, _): placeholder
        }
    }

    /// The flag with the placeholder of its value, as the help shows it.
    var usage: String { "--\(name)" + (placeholder.map { " " + $0 } ?? "") }

    /// Returns the reason why a value is invalid.
    func problem(with value: String) -> String? {
        do throws(InputError) {
            switch kind {
            case .toggle:
                break
            case .choice(let choices, _):
                guard !choices.contains(value) else { break }
                let hint = NameSuggestion.of(value, among: choices).map { "; did you mean \($0)?" } ?? ""
                return "--\(name): \(DisplayedText(value)) is not one of \(choices.joined(separator: ", "))\(hint)"
            case .seconds(let range):
                _ = try SettingValue.seconds(value, in: range)
            case .number(let range):
                guard let number = Int(value), range.contains(number) else {
                    let limits = "\(range.lowerBound) to \(range.upperBound)"
                    return "--\(name): \(DisplayedText(value)) is not a whole number from \(limits)"
                }
            case .file, .database:
                try SettingValue.checkText(value)
            case .clientID:
                _ = try SettingValue.clientID(value)
            case .user:
                return OperandSpecification.user("").problem(with: value)
            case .endpoint:
                _ = try SettingValue.endpoint(value)
            case .text(_, let allowed):
                guard allowed.matches(value) else { return "--\(name): \(DisplayedText(value)) is not \(allowed.rule)" }
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
    let lengthLimit: Int
    /// `true` if a flag may replace the operand; the command's `problems` check which.
    var isOptional = false

    static func user(_ summary: String, isOptional: Bool = false) -> OperandSpecification {
        OperandSpecification(placeholder: "USER", summary: summary, lengthLimit: 1024, isOptional: isOptional)
    }

    static func file(_ summary: String, isOptional: Bool = false) -> OperandSpecification {
        OperandSpecification(
            placeholder: "FILE",
            summary: summary,
            lengthLimit: SettingValue.lengthLimit,
            isOptional: isOptional
        )
    }

    static func service(_ summary: String) -> OperandSpecification {
        OperandSpecification(placeholder: "SERVICE", summary: summary, lengthLimit: 64)
    }

    static func keyID(_ summary: String) -> OperandSpecification {
        OperandSpecification(placeholder: "ID", summary: summary, lengthLimit: 128)
    }

    /// Returns the reason why a value is invalid.
    func problem(with value: String) -> String? {
        guard !value.isEmpty else { return "\(placeholder) is empty" }
        guard value.utf8.count <= lengthLimit else {
            return "\(placeholder) has \(value.utf8.count) bytes; at most \(lengthLimit) are allowed"
        }
        guard !value.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            return "\(placeholder) contains control characters"
        }
        return nil
    }
}

/// The characters and the length that a text may have.
struct AllowedText: Sendable {
    let lengthLimit: Int
    let signs: String

    func matches(_ text: String) -> Bool {
        (1...lengthLimit).contains(text.utf8.count)
            && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) || signs.contains($0) }
    }

    /// The rule in words for people.
    var rule: String { "up to \(lengthLimit) letters, digits and \(signs)" }
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

    static func toggle(_ name: String, _ summary: String) -> OptionSpecification {
        OptionSpecification(name, .toggle, summary)
    }

    /// `--client ID`, which selects grants; `--client-id` is a setting.
    static func client(_ summary: String) -> OptionSpecification {
        OptionSpecification("client", .clientID, summary)
    }
}

/// What a command is called, takes and does: the parser and the help both read it, so that neither can drift.
struct CommandSpecification: Sendable {
    /// A line that somebody can type, and what it achieves.
    struct Example: Sendable {
        let line: String
        let purpose: String
    }

    /// Turns what was parsed into a command.
    typealias Maker = @Sendable (CommandArguments) -> Command

    /// The words that name the command, none for the program itself.
    let words: [String]
    let summary: String
    /// Paragraphs of explanation.
    let discussion: [String]
    var operands: [OperandSpecification] = []
    var options: [OptionSpecification] = []
    /// The settings that matter to the command; the others are accepted too, so that a wrapper can pass the same always.
    var settings: [Setting.Name] = []
    var examples: [Example] = []
    var exitCodes: [ExitCode] = []
    var subcommands: [CommandSpecification] = []
    /// What is wrong with operands and flags together, though each is good by itself.
    var problems: @Sendable (CommandArguments) -> [String] = { _ in [] }
    /// `nil` for a group, which does nothing without one of its subcommands.
    var make: Maker?

    /// The command as it is typed.
    var invocation: String {
        (["refresh-worker"] + words).joined(separator: " ")
    }

    /// The command and everything below it.
    var tree: [CommandSpecification] {
        [self] + subcommands.flatMap(\.tree)
    }
}

/// A flag of one command.
struct OptionSpecification: Sendable {
    /// What the flag takes.
    enum Kind: Sendable {
        case toggle
        case choice([String], as: String)
        case seconds(ClosedRange<Int>)
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

    /// What stands for the value in the help; `nil` when the flag takes none.
    var placeholder: String? {
        switch kind {
        case .toggle: nil
        case .choice(_, let placeholder): placeholder
        case .seconds: "SECONDS"
        case .file: "FILE"
        case .clientID: "ID"
        case .user: "USER"
        case .endpoint: "URL"
        case .database: "PLACE"
        case .text(let placeholder, _): placeholder
        }
    }
}

/// Which characters a text may have, and how many.
struct AllowedText: Sendable {
    let lengthLimit: Int
    let signs: String

    func matches(_ text: String) -> Bool {
        (1...lengthLimit).contains(text.utf8.count)
            && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) || signs.contains($0) }
    }

    /// In words for a person.
    var rule: String { "up to \(lengthLimit) letters, digits and \(signs)" }
}

/// A word that a command needs after its name.
struct OperandSpecification: Sendable {
    let placeholder: String
    let summary: String
    /// Longest value in bytes.
    let lengthLimit: Int
    /// Whether a flag may take its place; the command's rules say which.
    var isOptional = false

    static func user(_ summary: String) -> OperandSpecification {
        OperandSpecification(placeholder: "USER", summary: summary, lengthLimit: 1024)
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
        OperandSpecification(placeholder: "NAME", summary: summary, lengthLimit: 64)
    }

    static func keyID(_ summary: String) -> OperandSpecification {
        OperandSpecification(placeholder: "ID", summary: summary, lengthLimit: 128)
    }
}

/// What a command was given, checked against its specification.
struct CommandArguments: Sendable {
    let operands: [String]
    /// The values of the command's own flags; a toggle's is empty.
    let options: [String: String]

    /// The only operand of the commands that need one.
    var operand: String { operands.first ?? "" }

    func has(_ option: String) -> Bool { options[option] != nil }

    func seconds(_ option: String, otherwise defaultValue: Int) -> Duration {
        .seconds(options[option].flatMap { Int($0) } ?? defaultValue)
    }
}

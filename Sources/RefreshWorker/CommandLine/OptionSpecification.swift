import Base
import Storage

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
        case connection
        case label
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

    var isDatabase: Bool { if case .database = kind { true } else { false } }
    var isFile: Bool { if case .file = kind { true } else { false } }

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
        case .connection: "ID"
        case .label: "NAME=VALUE"
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
                let hint = value.suggestion(among: choices)
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
            case .connection:
                guard ConnectionID(value) == nil else { break }
                return "--\(name): \(DisplayedText(value)) \(ConnectionID.rule)"
            case .label:
                guard GrantFilter.Label(value) == nil else { break }
                return "--\(name): \(DisplayedText(value)) is not NAME=VALUE, each of \(ConnectionLabels.lengthRule)"
            case .endpoint:
                _ = try SettingValue.endpoint(value)
            case .text(_, let maximumLength, let signs):
                let isAllowed = value.allSatisfy { $0.isASCIILetterOrDigit || signs.contains($0) }
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

    /// `--connection ID`, of commands about one grant of a user.
    static let connection = OptionSpecification(
        "connection",
        .connection,
        "which of the user's Google accounts, by the id of its connection. Default: default"
    )

    /// `--connection ID`, of a handle, which names no connection without it.
    static let connectionOfHandle = OptionSpecification(
        "connection",
        .connection,
        "the only one of the user's connections that the handle gets"
    )

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

extension Character {
    fileprivate var isASCIILetterOrDigit: Bool { isASCII && (isLetter || isNumber) }
}

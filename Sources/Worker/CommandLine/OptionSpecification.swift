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
        do throws(SettingValue.Refusal) {
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

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

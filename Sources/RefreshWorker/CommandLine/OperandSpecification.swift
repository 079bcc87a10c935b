import Base

/// A word that a command needs after its name.
struct OperandSpecification: Sendable {
    let placeholder: String
    let summary: String
    /// The limit of the value in bytes.
    let maximumLength: Int
    /// `true` if a flag can replace the operand, which ``Command/check`` decides.
    var isOptional = false

    var isFile: Bool { placeholder == "FILE" }

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

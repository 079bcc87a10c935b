internal import Base

extension JSONValue {
    /// `true` for a JSON `true`, and for the string "true" that tokeninfo sends.
    var isTrue: Bool { bool ?? (string == "true") }
}

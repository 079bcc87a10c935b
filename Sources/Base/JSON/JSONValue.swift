/// A parsed JSON value (RFC 8259).
///
/// Numbers keep their text, so that they are not rounded before the reader chooses a type.
package enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case number(String)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// The value of an object's member, or `nil` if this is not an object or does not have the member.
    package subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members[name]
    }

    package var string: String? {
        guard case .string(let text) = self else { return nil }
        return text
    }

    package var bool: Bool? {
        guard case .bool(let value) = self else { return nil }
        return value
    }

    package var array: [JSONValue]? {
        guard case .array(let values) = self else { return nil }
        return values
    }

    package var object: [String: JSONValue]? {
        guard case .object(let members) = self else { return nil }
        return members
    }

    /// The number, if it is whole and fits, as `3600`, `3600.0` and `36e2` do.
    package var integer: Int64? {
        guard case .number(let text) = self else { return nil }
        if let whole = Int64(text) { return whole }
        guard let double = Double(text), double.magnitude <= 0x1p53 else { return nil }
        return Int64(exactly: double)
    }
}

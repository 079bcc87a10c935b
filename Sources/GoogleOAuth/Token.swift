package import JSON
package import Secrets

/// What may be a token: visible ASCII that is safe in a header and in a form (RFC 6749 appendix A, without the space).
package enum Token {
    /// Google speaks of 2,048 bytes and of variable sizes; whatever is longer than this is no token.
    package static let greatestLength = 16_384

    package static func isWellFormed(_ text: String) -> Bool {
        let bytes = text.utf8Span.span
        return (1...greatestLength).contains(bytes.count)
            && bytes.indices.allSatisfy { (0x21...0x7e).contains(bytes[$0]) }
    }

    /// The token of a member that must be there.
    package static func required(_ value: JSONValue?) -> Secret? {
        guard let text = value?.string, isWellFormed(text) else { return nil }
        return Secret(text)
    }

    /// The token of a member that may be missing, `null` or empty, and whether what is there is well-formed.
    package static func optional(_ value: JSONValue?) -> (value: Secret?, isWellFormed: Bool) {
        guard let value, value != .null, value != .string("") else { return (nil, true) }
        let token = required(value)
        return (token, token != nil)
    }
}

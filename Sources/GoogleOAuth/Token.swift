package import Base
package import Crypto

/// The syntax of a token: visible ASCII that is safe in a header and in a form (RFC 6749 appendix A, without the
/// space).
package enum Token {
    /// Google documents 2,048 bytes and says that sizes can vary. A longer text than this is not a token.
    package static let maximumLength = 16_384

    package static func isWellFormed(_ text: String) -> Bool {
        let bytes = text.utf8Span.span
        return (1...maximumLength).contains(bytes.count)
            && bytes.indices.allSatisfy { (0x21...0x7e).contains(bytes[$0]) }
    }

    /// Returns the token that a text is, or `nil` if it is not well-formed.
    static func required(_ text: RawSpan) -> Secret? {
        guard (1...maximumLength).contains(text.byteCount), text.isVisibleASCII else { return nil }
        return Secret(copying: text)
    }

    /// Returns the token of a required member.
    package static func required(_ value: JSONValue?) -> Secret? {
        guard let text = value?.string, isWellFormed(text) else { return nil }
        return Secret(text)
    }

    /// The token of an optional member, which can be missing, `null` or empty.
    package struct OptionalMember {
        package let value: Secret?
        package let isWellFormed: Bool
    }

    package static func optional(_ value: JSONValue?) -> OptionalMember {
        guard let value, value != .null, value != .string("") else {
            return OptionalMember(value: nil, isWellFormed: true)
        }
        let token = required(value)
        return OptionalMember(value: token, isWellFormed: token != nil)
    }
}

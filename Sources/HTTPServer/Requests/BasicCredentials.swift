private import Crypto

/// The name and password of a request's `Authorization` header (RFC 7617), as OAuth clients send them.
package enum BasicCredentials: Hashable, Sendable {
    /// No header, or one with another scheme.
    case missing
    /// More than one header, or text that is not a name and a password.
    case malformed
    case present(name: String, password: String)

    package init(of request: ServerRequest) {
        switch AuthorizationHeader(of: request) {
        case .present(scheme: "basic", parts: let parts): self = Self.decoded(parts) ?? .malformed
        case .ambiguous: self = .malformed
        case .missing, .present: self = .missing
        }
    }

    /// Decodes Base64, splits at the first colon, and decodes both parts.
    ///
    /// OAuth clients encode name and password as a form does before they join them
    /// (https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1).
    private static func decoded(_ parts: [Substring]) -> BasicCredentials? {
        guard parts.count == 1, let bytes = Base64.decode(parts[0].utf8),
            let colon = bytes.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        return .present(
            name: URLEncoding.decoded(bytes[..<colon], plusIsSpace: true),
            password: URLEncoding.decoded(bytes[(colon + 1)...], plusIsSpace: true)
        )
    }
}

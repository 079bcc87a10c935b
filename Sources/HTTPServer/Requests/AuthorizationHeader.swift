private import Crypto

extension ServerRequest {
    /// The `Authorization` header, split at blanks (RFC 9110, section 11.6.2).
    ///
    /// It has the scheme in lower case, and at most two parts after it: the second has all that follows the first. The
    /// scheme is empty without a header, and `nil` if there are two: one component could trust the first and another
    /// the second.
    fileprivate var authorization: (scheme: String?, parts: [Substring]) {
        let headers = headers.values("Authorization")
        guard headers.count == 1 else { return (headers.isEmpty ? "" : nil, []) }
        let words = headers[0].utf8.split(maxSplits: 2) { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        let scheme = words.first.map { Substring($0).lowercased() } ?? ""
        return (scheme, words.dropFirst().map { Substring($0) })
    }
}

/// The name and password of a request's `Authorization` header (RFC 7617), as OAuth clients send them.
package enum BasicCredentials: Hashable, Sendable {
    /// No header, or one with another scheme.
    case missing
    /// More than one header, or text that is not a name and a password.
    case malformed
    case present(name: String, password: String)

    package init(of request: ServerRequest) {
        switch request.authorization {
        case ("basic", let parts): self = Self.decoded(parts) ?? .malformed
        case (nil, _): self = .malformed
        default: self = .missing
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

/// The token of a request's `Authorization` header (RFC 6750, section 2.1).
package enum BearerToken: Hashable, Sendable {
    case missing
    /// More than one header, or not exactly one token after the scheme.
    case malformed
    case present(String)

    package init(of request: ServerRequest) {
        switch request.authorization {
        // Another scheme cannot carry a token of this kind.
        case ("bearer", let parts) where !parts.isEmpty:
            // A comma shows that a proxy has joined two headers.
            let isToken = parts.count == 1 && !parts[0].utf8.contains(UInt8(ascii: ","))
            self = isToken ? .present(String(parts[0])) : .malformed
        case (nil, _): self = .malformed
        default: self = .missing
        }
    }

    /// The token, or `nil` if the request does not have exactly one.
    package var text: String? {
        if case .present(let text) = self { text } else { nil }
    }
}

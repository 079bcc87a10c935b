/// The token of a request's `Authorization` header (RFC 6750, section 2.1).
package enum BearerToken: Hashable, Sendable {
    case missing
    /// More than one header, or not exactly one token after the scheme.
    case malformed
    case present(String)

    package init(of request: ServerRequest) {
        switch AuthorizationHeader(of: request) {
        // Another scheme cannot carry a token of this kind.
        case .present(scheme: "bearer", parts: let parts) where !parts.isEmpty:
            // A comma shows that a proxy has joined two headers.
            let isToken = parts.count == 1 && !parts[0].utf8.contains(UInt8(ascii: ","))
            self = isToken ? .present(String(parts[0])) : .malformed
        case .ambiguous: self = .malformed
        case .missing, .present: self = .missing
        }
    }

    /// The token, or `nil` if the request does not have exactly one.
    package var text: String? {
        if case .present(let text) = self { text } else { nil }
    }
}

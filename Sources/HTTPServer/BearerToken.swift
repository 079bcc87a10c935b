/// The token of a request's `Authorization` header (RFC 6750, section 2.1).
package enum BearerToken: Hashable, Sendable {
    case missing
    /// More than one header, or not exactly one token after the scheme.
    case malformed
    case present(String)

    package init(of request: ServerRequest) {
        let headers = request.headerValues("Authorization")
        guard let header = headers.first else {
            self = .missing
            return
        }
        // With two headers, one component could trust the first and another the second.
        guard headers.count == 1 else {
            self = .malformed
            return
        }
        let words = header.utf8.split(maxSplits: 2) { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        // Another scheme cannot carry a token of this kind.
        guard words.count > 1, Substring(words[0]).lowercased() == "bearer" else {
            self = .missing
            return
        }
        // A comma shows that a proxy has joined two headers.
        guard words.count == 2, !words[1].contains(UInt8(ascii: ",")) else {
            self = .malformed
            return
        }
        self = .present(String(Substring(words[1])))
    }

    /// The token; `nil` if the request does not have exactly one.
    package var text: String? {
        if case .present(let text) = self { text } else { nil }
    }
}

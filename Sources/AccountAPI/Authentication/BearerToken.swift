internal import HTTPServer

/// The reason why a caller is refused; each family of routes answers it in its own form.
enum AuthenticationRefusal: Error, Hashable, Sendable {
    /// The request does not have a token.
    case missing
    /// The token, its session or its user is invalid; the answer does not say which.
    case invalid
    /// The token was valid before.
    case expired
    /// The user was deleted, but a former token may still be in use.
    case deleted
    case inactive
}

/// Reads the only token of an `Authorization` header (RFC 6750, section 2.1).
enum BearerToken {
    static func read(_ request: ServerRequest) throws(AuthenticationRefusal) -> String {
        let headers = request.headerValues("Authorization")
        guard let header = headers.first else { throw .missing }
        // With two headers, one component could trust the first and another the second.
        guard headers.count == 1 else { throw .invalid }
        let words = header.split(whereSeparator: { $0 == " " || $0 == "\t" })
        // Another scheme cannot carry a token of this kind.
        guard let scheme = words.first, scheme.lowercased() == "bearer", words.count > 1 else { throw .missing }
        guard words.count == 2, !words[1].contains(",") else { throw .invalid }
        return String(words[1])
    }
}

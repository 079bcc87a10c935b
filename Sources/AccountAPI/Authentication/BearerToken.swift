internal import HTTPServer

/// Why a caller is not let in; a route's family says it in its own words.
enum AuthenticationRefusal: Error, Hashable, Sendable {
    /// There is no token.
    case missing
    /// Whatever is wrong with the token, its session or its user: nobody is told which.
    case invalid
    /// The token was good once.
    case expired
    /// The user was deleted, and a token from before may still be about.
    case deleted
    case inactive
}

/// The one token of an `Authorization` header (RFC 6750, section 2.1).
enum BearerToken {
    static func read(_ request: ServerRequest) throws(AuthenticationRefusal) -> String {
        let headers = request.headerValues("Authorization")
        guard let header = headers.first else { throw .missing }
        // Of two headers one part of a system could believe the first and another the second.
        guard headers.count == 1 else { throw .invalid }
        let words = header.split(whereSeparator: { $0 == " " || $0 == "\t" })
        // Another scheme brings no token of this kind.
        guard let scheme = words.first, scheme.lowercased() == "bearer", words.count > 1 else { throw .missing }
        guard words.count == 2, !words[1].contains(",") else { throw .invalid }
        return String(words[1])
    }
}

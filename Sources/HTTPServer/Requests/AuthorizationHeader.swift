/// The `Authorization` header of a request, split at blanks (RFC 9110, section 11.6.2).
enum AuthorizationHeader {
    case missing
    /// There are two: one component could trust the first and another the second.
    case ambiguous
    /// The scheme in lower case, and at most two parts after it: the second has all that follows the first.
    case present(scheme: String, parts: [Substring])

    init(of request: ServerRequest) {
        let headers = request.headers.values("Authorization")
        guard let header = headers.first else {
            self = .missing
            return
        }
        guard headers.count == 1 else {
            self = .ambiguous
            return
        }
        let words = header.utf8.split(maxSplits: 2) { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            .map { Substring($0) }
        self = .present(scheme: words.first?.lowercased() ?? "", parts: Array(words.dropFirst()))
    }
}

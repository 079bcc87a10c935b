internal import HTTPServer
internal import JSON

extension ServerResponse {
    /// Returns an answer whose body is the object that `body` writes.
    static func object(status: Int = 200, headers: [ServerRequest.Field] = [], _ body: (inout JSONLine) -> Void) -> Self
    {
        var line = JSONLine()
        body(&line)
        return .json(line.bytes, status: status, headers: headers)
    }

    /// The header that forbids caching.
    static let noStore: ServerRequest.Field = ("Cache-Control", "no-store")

    /// The answer with headers that forbid caching and content sniffing.
    var secured: ServerResponse {
        var response = self
        response.headers += [Self.noStore, ("X-Content-Type-Options", "nosniff")]
        return response
    }
}

extension JSONLine {
    /// Writes a text, or `null` if it is not known.
    mutating func optional(_ key: String, _ value: String?) {
        if let value { field(key, value) } else { null(key) }
    }
}

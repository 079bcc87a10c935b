internal import HTTPServer
internal import JSON

extension ServerResponse {
    /// Returns an answer whose body is the object that `body` writes.
    static func object(status: Int = 200, headers: [ServerRequest.Field] = [], _ body: (inout JSONLine) -> Void) -> Self
    {
        var line = JSONLine()
        body(&line)
        return ServerResponse(
            status: status,
            headers: [("Content-Type", "application/json; charset=utf-8")] + headers,
            body: line.bytes
        )
    }

    /// The answer with headers that forbid caching and content sniffing.
    var secured: ServerResponse {
        var response = self
        response.headers += [("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")]
        return response
    }
}

extension JSONLine {
    /// Writes a text, or `null` if it is not known.
    mutating func optional(_ key: String, _ value: String?) {
        if let value { field(key, value) } else { null(key) }
    }
}

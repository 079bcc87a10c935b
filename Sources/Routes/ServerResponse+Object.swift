internal import Base
internal import HTTPServer

extension ServerResponse {
    /// Returns a response whose body is the object that `body` writes.
    ///
    ///     .object(status: 201) { $0.field("result", "added") }
    static func object(status: Int = 200, headers: [ServerRequest.Field] = [], _ body: (inout JSONLine) -> Void) -> Self
    {
        var line = JSONLine()
        body(&line)
        return .json(line.bytes, status: status, headers: headers)
    }

    static let noStore: ServerRequest.Field = ("Cache-Control", "no-store")

    /// The response with headers that forbid caching and content sniffing.
    var secured: ServerResponse {
        var response = self
        response.headers += [Self.noStore, ("X-Content-Type-Options", "nosniff")]
        return response
    }
}

extension Duration {
    /// The duration as a `Retry-After` header, rounded up so that a client that waits is not refused again.
    var retryAfter: ServerRequest.Field {
        let (seconds, attoseconds) = components
        return ("Retry-After", "\(max(1, attoseconds > 0 ? seconds + 1 : seconds))")
    }
}

package struct ServerResponse: Sendable {
    var status: Int
    package var headers: [ServerRequest.Field]
    var body: [UInt8]

    /// The pattern of the route that made the response, for the log. ``Router`` sets it.
    var route = "-"

    package init(status: Int = 200, headers: [ServerRequest.Field] = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// Makes a response from the bytes of a JSON text, which RFC 8259 gives no `charset`.
    package static func json(
        _ body: [UInt8],
        status: Int = 200,
        headers: [ServerRequest.Field] = []
    ) -> ServerResponse {
        ServerResponse(status: status, headers: [("Content-Type", "application/json")] + headers, body: body)
    }

    package static func json(_ text: String, status: Int = 200) -> ServerResponse {
        json(Array(text.utf8), status: status)
    }

    /// Makes a plain-text response for people.
    package static func text(_ text: String, status: Int = 200) -> ServerResponse {
        ServerResponse(status: status, headers: [("Content-Type", "text/plain; charset=utf-8")], body: Array(text.utf8))
    }
}

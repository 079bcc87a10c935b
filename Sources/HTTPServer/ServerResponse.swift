/// One whole answer.
package struct ServerResponse: Sendable {
    package var status: Int
    package var headers: [ServerRequest.Field]
    package var body: [UInt8]

    /// The pattern of the route that made the answer, for the log; ``Router`` sets it.
    var route = "-"

    package init(status: Int = 200, headers: [ServerRequest.Field] = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// An answer whose body is the JSON text given.
    package static func json(_ text: String, status: Int = 200) -> ServerResponse {
        ServerResponse(
            status: status,
            headers: [("Content-Type", "application/json; charset=utf-8")],
            body: Array(text.utf8)
        )
    }

    /// An answer for a person to read.
    package static func text(_ text: String, status: Int = 200) -> ServerResponse {
        ServerResponse(
            status: status,
            headers: [("Content-Type", "text/plain; charset=utf-8")],
            body: Array(text.utf8)
        )
    }
}

/// What a handler makes of a request.
package enum ServerReply: Sendable {
    case respond(ServerResponse)

    /// Close the connection without a byte.
    case drop
}

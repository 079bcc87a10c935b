/// One request as it came in, whole: the handler never sees half a body.
package struct ServerRequest: Sendable {
    /// A name and its value, in the order in which the client sent them.
    package typealias Field = (name: String, value: String)

    /// The request's name in the log and in the answer's Request-Id.
    package var id: String

    package var method: String

    /// The path without the query, percent-decoded once; what is not UTF-8 in it reads as U+FFFD.
    package let path: String

    /// What stands between the path's slashes, each part decoded by itself.
    let segments: [String]

    /// The query's fields, decoded.
    package var query: [Field]

    package var headers: [Field]
    package var body: [UInt8]

    /// The other end's numeric address without its port, or "unix".
    package var peerAddress: String

    /// Who sent the request: the peer, or the one for whom a trusted proxy passed it on.
    package var clientAddress: String

    package init(
        method: String,
        path: String,
        query: [Field] = [],
        headers: [Field] = [],
        body: [UInt8] = [],
        peerAddress: String = "127.0.0.1",
        clientAddress: String? = nil,
        id: String = "0"
    ) {
        self.id = id
        self.method = method
        self.path = path
        segments = RequestTarget.segments(of: path[...])
        self.query = query
        self.headers = headers
        self.body = body
        self.peerAddress = peerAddress
        self.clientAddress = clientAddress ?? peerAddress
    }

    init(
        method: String,
        target: RequestTarget,
        headers: [Field],
        body: [UInt8],
        peerAddress: String,
        clientAddress: String,
        id: String
    ) {
        self.id = id
        self.method = method
        path = target.path
        segments = target.segments
        query = target.query
        self.headers = headers
        self.body = body
        self.peerAddress = peerAddress
        self.clientAddress = clientAddress
    }

    /// The first header of that name, whose case does not matter.
    package func header(_ name: String) -> String? {
        headers.first { $0.name.isSameHeaderName(as: name) }?.value
    }

    /// Every header of that name, in the client's order.
    package func headerValues(_ name: String) -> [String] {
        headers.filter { $0.name.isSameHeaderName(as: name) }.map(\.value)
    }

    /// Whether the client said how it delimits a body; a route that cannot do without one answers 411 where it has not
    /// (https://www.rfc-editor.org/rfc/rfc9110#section-15.5.12).
    package var declaresBody: Bool { header("Content-Length") != nil || header("Transfer-Encoding") != nil }

    /// The first query field of that name.
    package func queryValue(_ name: String) -> String? {
        query.first { $0.name == name }?.value
    }

    /// The body's fields, where it is a form (application/x-www-form-urlencoded), whatever the content type claims.
    package var form: [Field] { URLEncoding.fields(of: body) }
}

extension String {
    /// Header names are ASCII and their case does not matter (https://www.rfc-editor.org/rfc/rfc9110#section-5.1).
    func isSameHeaderName(as other: String) -> Bool {
        utf8.count == other.utf8.count
            && zip(utf8, other.utf8).allSatisfy { Self.lowercased($0) == Self.lowercased($1) }
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte
    }
}

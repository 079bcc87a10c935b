/// One complete request, with its whole body.
package struct ServerRequest: Sendable {
    /// A name and its value; lists keep the order in which the client sent them.
    package typealias Field = (name: String, value: String)

    /// The request's id in the log and in the Request-Id header of the response.
    package var id: String

    package var method: String

    /// The path without the query, percent-decoded once; bytes that are not UTF-8 become U+FFFD.
    package let path: String

    /// The parts between the path's slashes, each decoded separately.
    let segments: [String]

    /// The query's fields, decoded.
    package var query: [Field]

    package var headers: [Field]
    package var body: [UInt8]

    /// The peer's numeric address without its port, or "unix".
    package var peerAddress: String

    /// The address of the sender: the peer, or the client for which a trusted proxy forwarded the request.
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

    /// Returns the first header with this name, whose case does not matter.
    package func header(_ name: String) -> String? {
        headers.first { $0.name.isSameHeaderName(as: name) }?.value
    }

    /// Returns every header with this name, in the client's order.
    package func headerValues(_ name: String) -> [String] {
        headers.filter { $0.name.isSameHeaderName(as: name) }.map(\.value)
    }

    /// `true` if the client declared how the body is delimited.
    ///
    /// Routes that need a body answer 411 otherwise (https://www.rfc-editor.org/rfc/rfc9110#section-15.5.12).
    package var declaresBody: Bool { header("Content-Length") != nil || header("Transfer-Encoding") != nil }

    /// Returns the first query field with this name.
    package func queryValue(_ name: String) -> String? {
        query.first { $0.name == name }?.value
    }

    /// The fields of a form body (application/x-www-form-urlencoded); the content type is not checked.
    package var form: [Field] { URLEncoding.fields(of: body) }
}

extension String {
    /// Compares header names, which are ASCII, without regard to case
    /// (https://www.rfc-editor.org/rfc/rfc9110#section-5.1).
    func isSameHeaderName(as other: String) -> Bool {
        utf8.count == other.utf8.count
            && zip(utf8, other.utf8).allSatisfy { Self.lowercased($0) == Self.lowercased($1) }
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte
    }
}

/// One request as it came in, whole: the handler never sees half a body.
package struct ServerRequest: Sendable {
    /// A name and its value, in the order in which the client sent them.
    package typealias Field = (name: String, value: String)

    package var method: String

    /// The path without the query, percent-decoded once; what is not UTF-8 in it reads as U+FFFD.
    package var path: String

    /// The query's fields, decoded.
    package var query: [Field]

    package var headers: [Field]
    package var body: [UInt8]

    /// The other end's numeric address without its port, or "unix".
    package var peerAddress: String

    package init(
        method: String,
        path: String,
        query: [Field] = [],
        headers: [Field] = [],
        body: [UInt8] = [],
        peerAddress: String = "127.0.0.1"
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
        self.peerAddress = peerAddress
    }

    /// The first header of that name, whose case does not matter.
    package func header(_ name: String) -> String? {
        let wanted = name.lowercased()
        return headers.first { $0.name.lowercased() == wanted }?.value
    }

    /// The first query field of that name.
    package func queryValue(_ name: String) -> String? {
        query.first { $0.name == name }?.value
    }

    /// The body's fields, where it is a form (application/x-www-form-urlencoded), whatever the content type claims.
    package var form: [Field] { URLEncoding.fields(of: body) }
}

@testable package import HTTPServer

extension ServerRequest {
    /// Creates a request from parts that are decoded already.
    package init(
        method: String,
        path: String,
        query: [Field] = [],
        headers: [Field] = [],
        body: [UInt8] = [],
        peerAddress: String = "127.0.0.1"
    ) {
        self.init(
            method: method,
            target: RequestTarget(path: path, isPath: true, segments: RequestTarget.segments(of: path), query: query),
            headers: headers,
            body: body,
            peerAddress: peerAddress,
            clientAddress: peerAddress,
            id: "0"
        )
    }
}

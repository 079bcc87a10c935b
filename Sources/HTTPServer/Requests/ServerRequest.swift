package import Base

/// One complete request, with its whole body.
package struct ServerRequest: Sendable {
    /// A name and its value.
    ///
    /// Lists keep the order in which the client sent them.
    package typealias Field = (name: String, value: String)

    package var method: String
    let target: RequestTarget
    /// The headers, in the client's order.
    var headers: [Field]
    package var body: [UInt8]

    /// The peer's numeric address without its port, or "unix".
    package var peerAddress: String

    /// The address of the sender: the peer, or the client for which a trusted proxy forwarded the request.
    package var clientAddress: String

    /// The request's id in the log and in the Request-Id header of the response.
    package var id: String

    /// The path without the query, percent-decoded once. Bytes that are not UTF-8 become U+FFFD.
    package var path: String { target.path }

    /// The parts between the path's slashes, each decoded separately.
    var segments: [String] { target.segments }

    /// The query's fields, decoded.
    package var query: [Field] { target.query }

    /// Returns the first header with this name, whose case does not matter.
    package func header(_ name: String) -> String? {
        headers.first { $0.name.isSameHeaderName(as: name) }?.value
    }

    /// Where the request belongs in a trace of its caller. One header alone counts, in the form of the standard.
    package var traceContext: TraceContext? {
        let values = headers.values("traceparent")
        guard let value = values.first, values.count == 1 else { return nil }
        return TraceContext(traceparent: value)
    }

    /// `true` if the client declared how the body is delimited. Routes that need a body answer 411 otherwise
    /// (https://www.rfc-editor.org/rfc/rfc9110#section-15.5.12).
    package var declaresBody: Bool { header("Content-Length") != nil || header("Transfer-Encoding") != nil }

    /// Returns the first query field with this name.
    package func queryValue(_ name: String) -> String? {
        query.first { $0.name == name }?.value
    }

    /// The fields of a form body (application/x-www-form-urlencoded). The content type is not checked.
    package var form: [Field] { URLEncoding.fields(of: body) }
}

extension [ServerRequest.Field] {
    /// Returns the values of every header with this name.
    func values(_ name: String) -> [String] { filter { $0.name.isSameHeaderName(as: name) }.map(\.value) }
}

extension String {
    /// Compares header names, which are ASCII, without regard to case
    /// (https://www.rfc-editor.org/rfc/rfc9110#section-5.1).
    func isSameHeaderName(as other: String) -> Bool {
        utf8.count == other.utf8.count
            && zip(utf8, other.utf8).allSatisfy { $0.asciiLowercased == $1.asciiLowercased }
    }
}

extension ServerRequest {
    /// Returns an id of sixteen random hexadecimal digits.
    static func randomID(from source: any RandomSource) -> String {
        let bits = source.nextBits()
        return unsafe String(unsafeUninitializedCapacity: 16) { digits in
            for index in 0..<16 {
                let digit = UInt8(truncatingIfNeeded: bits >> UInt64(60 - 4 * index)) & 0xf
                unsafe digits[index] = digit + (digit < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10)
            }
            return 16
        }
    }

    /// Returns the id that a proxy gave the request, if it can be logged as it is.
    static func forwardedID(in headers: [Field]) -> String? {
        let header = headers.first { name, _ in
            name.isSameHeaderName(as: "X-Request-Id") || name.isSameHeaderName(as: "Request-Id")
        }
        guard let id = header?.value, id.isPlainID else { return nil }
        return id
    }
}

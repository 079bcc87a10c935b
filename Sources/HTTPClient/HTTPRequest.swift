internal import Crypto

/// One request for ``HTTPClient``.
package struct HTTPRequest: Sendable {
    let pattern: RequestPattern
    let body: HTTPBody?

    /// Makes one of many requests that differ only in their bodies.
    package init(_ pattern: RequestPattern, body: HTTPBody) {
        self.pattern = pattern
        self.body = body
    }

    /// Makes a single request with its own pattern.
    package init(
        method: RequestPattern.Method,
        endpoint: Endpoint,
        headers: [(String, String)] = [],
        body: HTTPBody? = nil
    ) {
        pattern = RequestPattern(method: method, endpoint: endpoint, headers: headers, isSecret: true)
        self.body = body
    }

    /// `true` if each part can be sent as it is.
    var isSendable: Bool { pattern.isSendable }
}

extension HTTPRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The method, host and path.
    ///
    /// Queries, headers and bodies are left out because they carry tokens.
    package var description: String { pattern.description }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The parts that the requests of one kind share: method, URL and headers.
///
/// It is validated, and prepared for HTTP/2, once when it is made.
package final class RequestPattern: Sendable {
    package enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
    }

    let method: Method
    /// The URL, possibly with a query.
    let endpoint: Endpoint
    let headers: [(String, String)]
    /// The host and port, as HTTP/2 names them.
    let authority: String
    let fields: HTTP2Fields
    /// `true` if each header can be sent as it is: a line break in a value would start another header.
    let isSendable: Bool

    /// Makes a pattern for many requests; it must not hold a secret.
    package convenience init(method: Method, endpoint: Endpoint, headers: [(String, String)]) {
        self.init(method: method, endpoint: endpoint, headers: headers, isSecret: false)
    }

    fileprivate init(method: Method, endpoint: Endpoint, headers: [(String, String)], isSecret: Bool) {
        self.method = method
        self.endpoint = endpoint
        self.headers = headers
        authority = endpoint.authority
        fields = HTTP2Fields(method: method, endpoint: endpoint, headers: headers, isSecret: isSecret)
        isSendable = headers.allSatisfy { name, value in
            !name.isEmpty && name.utf8.allSatisfy(Self.isTokenByte)
                && value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
        }
    }

    /// The characters of a header's name (https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2).
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default:
            "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}

extension RequestPattern: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The method, host and path.
    ///
    /// Queries and headers are left out because they carry tokens.
    package var description: String { "\(method.rawValue) \(endpoint)" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The body of a request or response: bytes that are never printed and are overwritten when the last reference is
/// released.
///
/// The array that a body was made from is not wiped; ``FormBody`` builds a body without such a copy.
package final class HTTPBody: Sendable {
    private let content: ErasedBytes

    init(_ content: consuming ErasedBytes) {
        self.content = content
    }

    package init(_ bytes: [UInt8]) {
        var content = ErasedBytes(capacity: bytes.count)
        content.append(bytes)
        self.content = content
    }

    var count: Int { content.count }

    /// Calls the closure with the bytes.
    package func withBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try content.withBytes(body)
    }

    /// The address of the bytes, for a C function that reads them later; valid as long as this object exists.
    @unsafe
    var address: UnsafeRawPointer? { unsafe content.address }

    /// Returns a copy of the bytes, for readers that cannot take a span.
    ///
    /// The copy can be printed and is not wiped.
    package func reveal() -> [UInt8] {
        withBytes { span in unsafe span.withUnsafeBytes { bytes in unsafe Array(bytes) } }
    }
}

extension HTTPBody: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "<\(count) bytes>" }

    package var debugDescription: String { description }

    /// Empty, because `dump` and other users of mirrors would bypass the descriptions.
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// Encodes name and value pairs as `application/x-www-form-urlencoded`.
///
/// It takes values as bytes and writes them into memory that is wiped, so that a secret does not have to become a
/// string. The encoding is the URL standard's serializer (https://url.spec.whatwg.org/#urlencoded-serializing).
package struct FormBody: ~Copyable {
    package static let contentType = "application/x-www-form-urlencoded"

    private var encoded = ErasedBytes(capacity: 512)

    package init() {}

    package mutating func append(_ name: String, _ value: String) {
        append(name, unsafe value.utf8Span.span.bytes)
    }

    package mutating func append(_ name: String, _ value: RawSpan) {
        if encoded.count > 0 { encoded.append(UInt8(ascii: "&")) }
        percentEncode(unsafe name.utf8Span.span.bytes)
        encoded.append(UInt8(ascii: "="))
        percentEncode(value)
    }

    /// Returns the body of all pairs appended so far.
    package consuming func finish() -> HTTPBody {
        HTTPBody(encoded)
    }

    private mutating func percentEncode(_ bytes: RawSpan) {
        var plainStart = 0
        for offset in bytes.byteOffsets {
            let byte = unsafe bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
            guard !Self.isPlain(byte) else { continue }
            encoded.append(bytes.extracting(plainStart..<offset))
            plainStart = offset + 1
            if byte == UInt8(ascii: " ") {
                encoded.append(UInt8(ascii: "+"))
            } else {
                encoded.append(UInt8(ascii: "%"))
                encoded.append(Self.hexadecimalDigit(byte >> 4))
                encoded.append(Self.hexadecimalDigit(byte & 15))
            }
        }
        encoded.append(bytes.extracting(plainStart...))
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "*"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "_"):
            true
        default:
            false
        }
    }

    private static func hexadecimalDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }
}

/// A complete response with any status.
package struct HTTPResponse: Sendable {
    enum Version: Sendable {
        case http1
        case http2
    }

    package let status: Int
    package let body: HTTPBody
    let httpVersion: Version
    /// `true` if a connection was opened for this request.
    let newConnection: Bool

    /// The header lines as received.
    let head: HTTPBody

    /// Returns the first value of a header without surrounding blanks.
    ///
    /// The case of the name does not matter.
    package func header(_ name: String) -> String? {
        head.withBytes { span in
            unsafe span.withUnsafeBytes { bytes in unsafe Self.find(Array(name.utf8), in: bytes) }
        }
    }

    private static func find(_ name: [UInt8], in head: UnsafeRawBufferPointer) -> String? {
        let lines = unsafe head.split(separator: UInt8(ascii: "\n"))
        let found = unsafe lines.first { line in
            let lineName = unsafe line.prefix { $0 != UInt8(ascii: ":") }
            return unsafe lineName.count < line.count
                && lineName.elementsEqual(name, by: { lowercase($0) == lowercase($1) })
        }
        guard let line = unsafe found else { return nil }
        var value = unsafe line.dropFirst(name.count + 1)
        while let first = unsafe value.first, isBlank(first) { unsafe value.removeFirst() }
        while let last = unsafe value.last, isBlank(last) { unsafe value.removeLast() }
        return unsafe String(decoding: value, as: UTF8.self)
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r")
    }

    private static func lowercase(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}

extension HTTPResponse: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "\(status), \(body.count) bytes" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}

extension HTTPResponse {
    /// The cap on any `Retry-After` value.
    private static let longestRetryAfter: Duration = .seconds(3600)

    /// The delay from `Retry-After` (RFC 9110 section 10.2.3), if the header gives it in seconds.
    ///
    /// `nil` if the header is missing, or is a date: a date needs a clock that agrees with the server's.
    package var retryAfter: Duration? { Self.retryAfter(header("retry-after")) }

    static func retryAfter(_ header: String?) -> Duration? {
        guard let header, header.isDecimalNumber else { return nil }
        guard let seconds = Int64(header) else { return longestRetryAfter }
        return min(.seconds(seconds), longestRetryAfter)
    }
}

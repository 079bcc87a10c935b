private import Base
internal import CNGHTTP2
internal import Crypto

/// One request for ``HTTPClient``.
package struct HTTPRequest: Sendable {
    let pattern: RequestPattern
    let body: HTTPBody?

    /// Makes one of many requests that differ only in their bodies.
    package init(_ pattern: RequestPattern, body: HTTPBody?) {
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

    /// Makes a pattern for many requests, or for a single one that holds a secret.
    package init(method: Method, endpoint: Endpoint, headers: [(String, String)], isSecret: Bool = false) {
        self.method = method
        self.endpoint = endpoint
        self.headers = headers
        authority = endpoint.authority
        fields = HTTP2Fields(method: method, endpoint: endpoint, headers: headers, isSecret: isSecret)
        isSendable = headers.allSatisfy { $0.isHeaderName && $1.isHeaderValue }
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
/// The array that a body was made from is not wiped.
///
/// ``FormBody`` builds a body without such a copy.
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

    /// The address of the bytes, for a C function that reads them later.
    ///
    /// It is valid as long as this object exists.
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
        byte.isASCIILetterOrDigit || byte == UInt8(ascii: "*") || byte == UInt8(ascii: "-")
            || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
    }

    private static func hexadecimalDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }
}

/// Header fields in the form that nghttp2 takes, prepared once for all requests that share them.
///
/// `@unchecked Sendable` holds because nothing changes after `init`.
@safe
final class HTTP2Fields: @unchecked Sendable {
    /// The names and values, one after the other.
    private let text: ErasedBytes
    private let fields: UnsafeMutableBufferPointer<nghttp2_nv>

    /// - Parameters:
    ///   - fields: names in lower case, and values, with pseudo-header fields first.
    ///   - isSecret: `true` if a value might be a secret. Then neither side keeps the fields for later requests.
    init(_ fields: [(name: String, value: String)], isSecret: Bool) {
        var text = ErasedBytes(capacity: fields.reduce(1) { $0 + $1.name.utf8.count + $1.value.utf8.count })
        for (name, value) in fields {
            text.append(Array(name.utf8))
            text.append(Array(value.utf8))
        }
        unsafe self.fields = .allocate(capacity: fields.count)
        let indexing = isSecret ? NGHTTP2_NV_FLAG_NO_INDEX.rawValue : 0
        let flags = NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue | NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue | indexing
        var next = unsafe UnsafeMutablePointer(mutating: text.address?.assumingMemoryBound(to: UInt8.self))
        for (index, field) in fields.enumerated() {
            let (nameLength, valueLength) = (field.name.utf8.count, field.value.utf8.count)
            let value = unsafe next.map { unsafe $0 + nameLength }
            unsafe self.fields.initializeElement(
                at: index,
                to: nghttp2_nv(
                    name: next,
                    value: value,
                    namelen: nameLength,
                    valuelen: valueLength,
                    flags: UInt8(flags)
                )
            )
            unsafe next = unsafe value.map { unsafe $0 + valueLength }
        }
        self.text = text
    }

    deinit {
        unsafe fields.deallocate()
    }

    /// Calls the closure with these fields, the others, and the length of the body unless it is `nil`.
    ///
    /// nghttp2 copies only the length: both objects must exist until nghttp2 has sent the fields.
    func withFields<Result>(
        and others: HTTP2Fields,
        bodyLength: Int?,
        _ body: (UnsafeBufferPointer<nghttp2_nv>) -> Result
    ) -> Result {
        var name = Self.lengthName
        var digits = bodyLength.map { Array(String($0).utf8) } ?? []
        return unsafe name.withUnsafeMutableBufferPointer { name in
            unsafe digits.withUnsafeMutableBufferPointer { digits in
                let capacity = unsafe fields.count + others.fields.count + 1
                return unsafe withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: capacity) { all in
                    var count = unsafe all.initialize(fromContentsOf: fields)
                    count = unsafe all[count...].initialize(fromContentsOf: others.fields)
                    if bodyLength != nil {
                        let length = unsafe nghttp2_nv(
                            name: name.baseAddress,
                            value: digits.baseAddress,
                            namelen: name.count,
                            valuelen: digits.count,
                            flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue)
                        )
                        unsafe all.initializeElement(at: count, to: length)
                        count += 1
                    }
                    return unsafe body(UnsafeBufferPointer(rebasing: all[..<count]))
                }
            }
        }
    }

    private static let lengthName = Array("content-length".utf8)
}

extension HTTP2Fields {
    /// Prepares the fields of a pattern.
    ///
    /// The client adds its user agent, and the length of each body.
    convenience init(method: RequestPattern.Method, endpoint: Endpoint, headers: [(String, String)], isSecret: Bool) {
        var fields = [
            (name: ":method", value: method.rawValue),
            (name: ":path", value: endpoint.target),
            (name: ":scheme", value: endpoint.scheme),
            (name: ":authority", value: endpoint.authority),
            (name: "accept", value: "*/*"),
        ]
        for (name, value) in headers {
            let name = name.lowercased()
            fields.removeAll { $0.name == name }
            // HTTP/2 allows no blanks around a value (https://www.rfc-editor.org/rfc/rfc9113#section-8.2.1).
            fields.append((name, String(Substring(value.utf8.trimmingBlanks))))
        }
        if method == .post, !fields.contains(where: { $0.name == "content-type" }) {
            fields.append((name: "content-type", value: FormBody.contentType))
        }
        self.init(fields, isSecret: isSecret)
    }
}

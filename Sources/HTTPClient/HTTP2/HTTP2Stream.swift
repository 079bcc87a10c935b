private import CNGHTTP2
package import Crypto

/// One request and what has arrived of its response.
package final class HTTP2Stream {
    /// The way in which a stream ended.
    package enum End: Hashable, Sendable {
        /// The response is complete.
        case complete
        /// The server or the framing ended the stream, with one of HTTP/2's error codes.
        case reset(UInt32)
        case bodyTooLarge
        case headersTooLarge
        /// ``HTTP2Session/cancel(_:)`` ended the stream.
        case cancelled
    }

    /// The caller's number for the request.
    package let tag: UInt64
    let requestHead: HTTP2RequestHead
    private let requestBody: ErasedBytes
    /// The number of bytes of the request's body that were sent.
    package private(set) var sentBodyBytes = 0
    private let limits: HTTP2Limits

    var id: Int32 = 0
    /// The position in the session's list.
    var index = 0
    package internal(set) var end: End?

    package private(set) var status = 0
    /// `true` once all headers of the final response have arrived.
    package private(set) var isHeadComplete = false
    /// `true` once any header has arrived, even of an interim response.
    package private(set) var hasResponse = false
    private var head = ErasedBytes()
    private var body = ErasedBytes()

    package init(tag: UInt64, head: HTTP2RequestHead, body: RawSpan, limits: HTTP2Limits) {
        self.tag = tag
        requestHead = head
        var copy = ErasedBytes(capacity: body.byteCount)
        copy.append(body)
        requestBody = copy
        self.limits = limits
    }

    /// The number of bytes of the response's body that were received.
    package private(set) var receivedBodyBytes = 0

    /// Takes out the header lines, below a status line.
    package func takeHead() -> ErasedBytes { Self.take(&head) }

    /// Takes out the received part of the response's body.
    package func takeBody() -> ErasedBytes { Self.take(&body) }

    private static func take(_ bytes: inout ErasedBytes) -> ErasedBytes {
        var taken = ErasedBytes()
        swap(&taken, &bytes)
        return taken
    }
}

// MARK: - The request's body

extension HTTP2Stream {
    var bodyLength: Int { requestBody.count }

    var unsentBytes: Int { requestBody.count - sentBodyBytes }

    /// Moves the next bytes of the body into the output.
    func moveBody(_ count: Int, into output: inout ErasedBytes) {
        requestBody.withBytes { output.append($0.extracting(sentBodyBytes..<(sentBodyBytes + count))) }
        sentBodyBytes += count
    }
}

// MARK: - The response

extension HTTP2Stream {
    /// `true` while the fields belong to a response; those after its body are left out.
    private var takesFields: Bool { end == nil && !isHeadComplete }

    /// Begins a block of fields; those of an interim response are dropped.
    func beginFields() {
        hasResponse = true
        guard takesFields else { return }
        head.removeAll()
        status = 0
    }

    /// Keeps a field as a line; returns `false` if the headers are too long.
    func receiveField(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> Bool {
        guard takesFields else { return true }
        guard unsafe name.first == UInt8(ascii: ":") else {
            return unsafe head.appendField(name, value, limit: limits.headerBytes)
        }
        guard unsafe name.elementsEqual(":status".utf8) else { return true }
        status = unsafe value.reduce(0) { $0 * 10 + Int($1 &- UInt8(ascii: "0")) }
        return unsafe head.appendStatusLine(value, limit: limits.headerBytes)
    }

    /// Ends a block of fields.
    func endFields() {
        guard takesFields, status >= 200 else { return }
        isHeadComplete = true
    }

    /// Keeps the body up to the limit, because the part that fits may hold a whole token; returns `false` if it is too
    /// long.
    func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let remaining = limits.bodyBytes - body.count
        receivedBodyBytes += min(bytes.count, remaining)
        guard bytes.count <= remaining else {
            unsafe body.append(UnsafeRawBufferPointer(rebasing: bytes.prefix(remaining)))
            return false
        }
        unsafe body.append(bytes)
        return true
    }
}

extension ErasedBytes {
    // Each of these is one access to the buffer of a stream: Swift checks every access to a class's properties.

    /// Appends a field as a line; returns `false` if the bytes would exceed the limit.
    fileprivate mutating func appendField(
        _ name: UnsafeRawBufferPointer,
        _ value: UnsafeRawBufferPointer,
        limit: Int
    ) -> Bool {
        guard count + name.count + value.count + 4 <= limit else { return false }
        unsafe append(name)
        append(UInt8(ascii: ":"))
        append(UInt8(ascii: " "))
        unsafe appendLine(value)
        return true
    }

    /// Appends a status line; returns `false` if the bytes would exceed the limit.
    fileprivate mutating func appendStatusLine(_ status: UnsafeRawBufferPointer, limit: Int) -> Bool {
        guard count + Self.version.count + status.count + 2 <= limit else { return false }
        append(Self.version)
        unsafe appendLine(status)
        return true
    }

    private mutating func appendLine(_ bytes: UnsafeRawBufferPointer) {
        unsafe append(bytes)
        append(UInt8(ascii: "\r"))
        append(UInt8(ascii: "\n"))
    }

    private static let version = Array("HTTP/2 ".utf8)
}

// MARK: - Error codes

extension HTTP2Stream {
    /// `true` if the server has not processed the request: it refused the stream, or ended the connection before it.
    package var isRefused: Bool { end == .reset(NGHTTP2_REFUSED_STREAM.rawValue) }

    /// Returns the name of one of HTTP/2's error codes.
    package static func name(ofCode code: UInt32) -> String {
        unsafe String(cString: nghttp2_http2_strerror(code))
    }
}

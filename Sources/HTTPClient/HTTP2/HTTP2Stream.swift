private import CNGHTTP2
internal import Crypto

/// The stream on which a request travels over HTTP/2.
struct HTTP2Stream {
    /// The way in which a stream ended.
    enum End: Equatable {
        /// The response is complete.
        case complete
        /// The server or the framing ended the stream, with one of HTTP/2's error codes.
        case reset(UInt32)
        /// This side ended the stream.
        case cancelled
    }

    var id: Int32 = 0
    /// The position in the session's list.
    var index = 0
    var end: End?
    /// The number of bytes of the request's body that were sent.
    var sentBodyBytes = 0
    /// `true` once any header has arrived, even of an interim response.
    var hasResponse = false

    /// `true` if the server has not processed the request: it refused the stream, or ended the connection before it.
    var isRefused: Bool { end == .reset(NGHTTP2_REFUSED_STREAM.rawValue) }
}

extension HTTPTransfer {
    var unsentBytes: Int { bodyLength - stream.sentBodyBytes }

    var bodyLength: Int { request.body?.count ?? 0 }

    /// Moves the next bytes of the request's body into the output.
    func moveBody(_ count: Int, into output: inout ErasedBytes) {
        let start = stream.sentBodyBytes
        request.body?.withBytes { output.append($0.extracting(start..<(start + count))) }
        stream.sentBodyBytes = start + count
    }

    /// Returns the response, or the reason why there is none, once the stream has ended.
    func resultOfStream() -> Result<HTTPResponse, HTTPFailure> {
        if let abortFailure { return .failure(abortFailure) }
        switch stream.end {
        case .complete:
            guard let response = takeResponse() else { fallthrough }
            return .success(response)
        case nil, .cancelled:
            return .failure(failure(.receiveFailed, "the stream ended without a response"))
        case .reset(let code):
            let name = unsafe String(cString: nghttp2_http2_strerror(code))
            return .failure(failure(.receiveFailed, "the stream ended with \(name) before the response was complete"))
        }
    }
}

/// The limits of one response.
struct ResponseLimits {
    var headerBytes = 65_536
    var bodyBytes = 65_536

    /// The bytes that a server may send on a stream before it must wait: a body up to the limit, and one frame more.
    var streamWindow: Int { min(max(65_535, bodyBytes + 16_384), Int(Int32.max)) }

    /// The bytes that a server may send on a connection before it must wait: many bodies at once.
    static let connectionWindow = 16 * 1024 * 1024
}

extension ErasedBytes {
    // Each of these is one access to a buffer: Swift checks every access to a class's properties. They return `false`
    // if the bytes would exceed the limit.

    mutating func appendLine(_ line: UnsafeRawBufferPointer, limit: Int) -> Bool {
        guard count + line.count <= limit else { return false }
        unsafe append(line)
        return true
    }

    mutating func appendField(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, limit: Int) -> Bool {
        guard count + name.count + value.count + 4 <= limit else { return false }
        unsafe append(name)
        append(UInt8(ascii: ":"))
        append(UInt8(ascii: " "))
        unsafe endLine(value)
        return true
    }

    mutating func appendStatusLine(_ status: UnsafeRawBufferPointer, limit: Int) -> Bool {
        guard count + Self.version.count + status.count + 2 <= limit else { return false }
        append(Self.version)
        unsafe endLine(status)
        return true
    }

    private mutating func endLine(_ bytes: UnsafeRawBufferPointer) {
        unsafe append(bytes)
        append(UInt8(ascii: "\r"))
        append(UInt8(ascii: "\n"))
    }

    private static let version = Array("HTTP/2 ".utf8)
}

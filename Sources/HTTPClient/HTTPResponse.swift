internal import Crypto

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

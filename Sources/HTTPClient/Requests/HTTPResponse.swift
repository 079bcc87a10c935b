private import Base

/// A complete response with any status.
package struct HTTPResponse: Sendable {
    package let status: Int
    package let body: HTTPBody
    let isHTTP2: Bool
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
                && lineName.elementsEqual(name, by: { $0.asciiLowercased == $1.asciiLowercased })
        }
        guard let line = unsafe found else { return nil }
        return unsafe String(decoding: line.dropFirst(name.count + 1).trimmingBlanks, as: UTF8.self)
    }
}

extension HTTPResponse: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "\(status), \(body.count) bytes" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}

extension HTTPResponse {
    private static let maximumRetryAfter: Duration = .seconds(3600)

    /// The delay from `Retry-After` (RFC 9110 section 10.2.3), if the header gives it in seconds. `nil` if the header
    /// is missing, or is a date: a date needs a clock that agrees with the server's.
    package var retryAfter: Duration? { Self.retryAfter(header("retry-after")) }

    static func retryAfter(_ header: String?) -> Duration? {
        guard let header, header.isDecimalNumber else { return nil }
        guard let seconds = Int64(header) else { return maximumRetryAfter }
        return min(.seconds(seconds), maximumRetryAfter)
    }
}

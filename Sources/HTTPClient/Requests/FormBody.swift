private import Base
private import Crypto

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

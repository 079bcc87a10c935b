internal import Base
import Crypto

/// The id of a request in the log and in the Request-Id header of its response.
enum RequestID {
    /// Returns sixteen random hexadecimal digits.
    static func random(from source: any RandomSource) -> String {
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
    static func forwarded(in headers: [ServerRequest.Field]) -> String? {
        let header = headers.first { name, _ in
            name.isSameHeaderName(as: "X-Request-Id") || name.isSameHeaderName(as: "Request-Id")
        }
        guard let id = header?.value, id.isPlainID else { return nil }
        return id
    }
}

/// Base64 with padding (RFC 4648, section 4).
package enum Base64 {
    package static func encode(_ bytes: [UInt8]) -> String {
        let text = Base64URL.encode(bytes).replacing("-", with: "+").replacing("_", with: "/")
        return text + String(repeating: "=", count: (4 - text.count % 4) % 4)
    }

    /// Decodes the text, and returns `nil` unless it is exactly the text that ``encode(_:)`` makes.
    package static func decode(_ text: some BidirectionalCollection<UInt8>) -> [UInt8]? {
        text.count.isMultiple(of: 4) ? Base64URL.decode(utf8: urlText(text)) : nil
    }

    /// Decodes a secret in place, so that its bytes are never stored elsewhere.
    package static func decode(_ text: Secret) -> Secret? {
        var isValid = text.count.isMultiple(of: 4)
        let secret = Secret(capacity: text.count) { buffer in
            var count = 0
            text.withBytes { span in
                unsafe span.withUnsafeBytes { bytes in
                    let urlText = unsafe urlText(bytes)
                    isValid =
                        unsafe isValid
                        && Base64URL.decode(utf8: urlText) { byte in
                            buffer.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
                            count += 1
                        }
                }
            }
            return count
        }
        return isValid ? secret : nil
    }

    /// Returns the text in the alphabet of ``Base64URL`` and without padding.
    ///
    /// Characters that only that alphabet has become `=`, which neither has.
    private static func urlText(_ text: some BidirectionalCollection<UInt8>) -> some Collection<UInt8> {
        let padding = text.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        return text.dropLast(min(padding, 2)).lazy.map { character in
            switch character {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            case UInt8(ascii: "-"), UInt8(ascii: "_"): UInt8(ascii: "=")
            default: character
            }
        }
    }
}

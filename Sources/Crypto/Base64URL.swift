/// URL-safe Base64 without padding (RFC 4648, section 5, as RFC 7515 uses it).
package enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// The value of each character, or 255 for a byte that is not in the alphabet.
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: .max, count: 256)
        for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
        return values
    }()

    package static func encode(_ bytes: [UInt8]) -> String {
        String(decoding: encoded(bytes), as: UTF8.self)
    }

    static func encoded(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count * 4 + 2) / 3)
        var pool: UInt32 = 0
        var bitCount = 0
        for byte in bytes {
            pool = (pool << 8 | UInt32(byte)) & 0xffff
            bitCount += 8
            while bitCount >= 6 {
                bitCount -= 6
                text.append(alphabet[Int(pool >> UInt32(bitCount)) & 0x3f])
            }
        }
        if bitCount > 0 { text.append(alphabet[Int(pool << UInt32(6 - bitCount)) & 0x3f]) }
        return text
    }

    /// Decodes the text, and returns `nil` unless it is exactly the text that ``encode(_:)`` makes.
    ///
    /// If one signature had several encodings, an altered token could still be accepted.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        decode(utf8: Array(text.utf8))
    }

    /// Decodes text without padding that has the characters of the standard alphabet (RFC 4648, section 4) as well.
    package static func decode(ofAnyAlphabet text: some Sequence<UInt8>) -> [UInt8]? {
        decode(
            utf8: text.map { character in
                switch character {
                case UInt8(ascii: "+"): UInt8(ascii: "-")
                case UInt8(ascii: "/"): UInt8(ascii: "_")
                default: character
                }
            }
        )
    }

    static func decode(utf8 text: some Collection<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count * 3 / 4)
        return decode(utf8: text) { bytes.append($0) } ? bytes : nil
    }

    /// Hands out each byte, and returns `false` if the text is not exactly what ``encode(_:)`` makes.
    fileprivate static func decode(utf8 text: some Collection<UInt8>, to append: (UInt8) -> Void) -> Bool {
        guard text.count % 4 != 1 else { return false }
        var pool: UInt32 = 0
        var bitCount = 0
        for character in text {
            let value = values[Int(character)]
            guard value != .max else { return false }
            pool = (pool << 6 | UInt32(value)) & 0xffff
            bitCount += 6
            guard bitCount >= 8 else { continue }
            bitCount -= 8
            append(UInt8(truncatingIfNeeded: pool >> UInt32(bitCount)))
        }
        return pool & (1 << UInt32(bitCount) - 1) == 0
    }
}

/// Base64 with padding (RFC 4648, section 4).
package enum Base64 {
    package static func encode(_ bytes: [UInt8]) -> String {
        let text = Base64URL.encode(bytes).map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
        return String(text) + String(repeating: "=", count: (4 - text.count % 4) % 4)
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

/// Bytes as pairs of hexadecimal digits.
package enum Hexadecimal {
    private static let digits = Array("0123456789abcdef".utf8)

    /// Returns two lower-case digits for each byte.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// Decodes the text, and returns `nil` unless it is exactly the text that ``encode(_:)`` makes.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        // The same bytes in other letters would be a second name of one thing.
        let values = text.utf8.compactMap(value(ofLowerCase:))
        guard values.count == text.utf8.count, values.count.isMultiple(of: 2) else { return nil }
        return stride(from: 0, to: values.count, by: 2).map { values[$0] << 4 | values[$0 + 1] }
    }

    /// Returns the value of one digit in either case, or `nil` for any other byte.
    package static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    static func value(ofLowerCase digit: UInt8) -> UInt8? {
        (UInt8(ascii: "A")...UInt8(ascii: "F")).contains(digit) ? nil : value(of: digit)
    }
}

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
    static func decode(utf8 text: some Collection<UInt8>, to append: (UInt8) -> Void) -> Bool {
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

private import Base
private import CCrypto

/// The id of a sealing key: eight random lowercase hexadecimal digits.
///
/// It is not part of the key.
package struct KeyID: Hashable, Comparable, Sendable, CustomStringConvertible {
    static let length = 8

    private let number: UInt32

    static func random() throws(CryptoError) -> KeyID {
        var number: UInt32 = 0
        try unsafe withUnsafeMutableBytes(of: &number) { (bytes) throws(CryptoError) in
            var buffer = unsafe bytes.mutableBytes
            try OpenSSL.fillRandomly(&buffer, in: 0..<buffer.byteCount)
        }
        return KeyID(number: number)
    }

    package static func < (left: KeyID, right: KeyID) -> Bool { left.number < right.number }

    package var description: String {
        var digits: [UInt8] = []
        appendDigits(to: &digits)
        return String(decoding: digits, as: UTF8.self)
    }

    /// Appends the bytes of ``description``.
    func appendDigits(to text: inout [UInt8]) {
        text.append(hexadecimal: UInt64(number), digits: Self.length)
    }
}

extension KeyID {
    /// Reads an id, and returns `nil` unless the text is eight lowercase hexadecimal digits.
    package init?(_ text: String) {
        self.init(ascii: text.utf8)
    }

    init?(ascii digits: some Collection<UInt8>) {
        guard digits.count == Self.length else { return nil }
        // Each refresh reads two ids, so no array of bytes is made.
        var number: UInt32 = 0
        for digit in digits {
            guard let value = Hexadecimal.value(ofLowerCase: digit) else { return nil }
            number = number << 4 | UInt32(value)
        }
        self.init(number: number)
    }
}

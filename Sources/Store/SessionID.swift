package import Clocks

/// The name of a session: 128 random bits.
package struct SessionID: Hashable, Sendable, CustomStringConvertible {
    static let byteCount = 16

    /// Its bits, the highest first.
    package let bytes: [UInt8]

    package init?(bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        self.bytes = bytes
    }

    /// Reads what ``description`` prints, and nothing else: one session has one name.
    package init?(text: some StringProtocol) {
        let digits = Array(text.utf8)
        guard digits.count == 2 * Self.byteCount else { return nil }
        var bytes: [UInt8] = []
        for position in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digits[position].hexadecimalValue, let low = digits[position + 1].hexadecimalValue else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        self.bytes = bytes
    }

    private init(high: UInt64, low: UInt64) {
        bytes = [high, low].flatMap { word in
            stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: word >> UInt64($0)) }
        }
    }

    package static func random(from source: any RandomSource) -> SessionID {
        SessionID(high: source.nextBits(), low: source.nextBits())
    }

    /// Thirty-two lower-case hexadecimal digits.
    package var description: String {
        bytes.map { byte in
            let digits = String(byte, radix: 16)
            return digits.utf8.count == 1 ? "0" + digits : digits
        }.joined()
    }
}

extension UInt8 {
    fileprivate var hexadecimalValue: UInt8? {
        switch self {
        case 0x30...0x39: self - 0x30
        case 0x61...0x66: self - 0x61 + 10
        default: nil
        }
    }
}

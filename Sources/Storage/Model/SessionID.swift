package import Base

/// The name of a session: 128 random bits.
package struct SessionID: Hashable, Sendable, CustomStringConvertible {
    package static let byteCount = 16

    /// The bits, the highest first.
    let bytes: [UInt8]

    package init?(bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        self.bytes = bytes
    }

    /// Parses the form of ``description``, and no other: one session has one name.
    package init?(text: some StringProtocol) {
        guard let bytes = Hexadecimal.decode(text) else { return nil }
        self.init(bytes: bytes)
    }

    private init(high: UInt64, low: UInt64) {
        bytes = [UInt8](bigEndian: high) + [UInt8](bigEndian: low)
    }

    package static func random(from source: any RandomSource) -> SessionID {
        SessionID(high: source.nextBits(), low: source.nextBits())
    }

    /// Thirty-two lower-case hexadecimal digits.
    package var description: String { Hexadecimal.encode(bytes) }
}

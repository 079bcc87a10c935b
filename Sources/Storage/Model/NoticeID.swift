import Base

/// The id of a notice: 96 random bits, so that no two databases give two notices one id.
package struct NoticeID: Hashable, Sendable, CustomStringConvertible {
    static let byteCount = 12

    let bytes: [UInt8]

    init?(bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        self.bytes = bytes
    }

    /// The lower half of `low` is not used.
    init(high: UInt64, low: UInt64) {
        bytes = Array(([UInt8](bigEndian: high) + [UInt8](bigEndian: low)).prefix(Self.byteCount))
    }

    static func random(from source: any RandomSource) -> NoticeID {
        NoticeID(high: source.nextBits(), low: source.nextBits())
    }

    /// `ntc_` and twenty-four lower-case hexadecimal digits.
    package var description: String { "ntc_\(Hexadecimal.encode(bytes))" }
}

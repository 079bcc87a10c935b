package import Base

/// The permanent name of a grant: 63 random bits.
///
/// Its high bits are the grant's phase, which sets its home instant in each period: rows that are due together are
/// close together in a table ordered by id.
package struct GrantID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let rawValue: Int64

    package init(rawValue: Int64) {
        self.rawValue = rawValue
    }

    package static func random(from source: any RandomSource) -> GrantID {
        GrantID(rawValue: Int64(source.nextBits() >> 1))
    }

    // A refresh looks its grant up a dozen times. The usual way, through a `Hasher`, takes three times as many
    // instructions for the same keyed hash.
    // swift-format-ignore: NoLeadingUnderscores
    package func _rawHashValue(seed: Int) -> Int { rawValue._rawHashValue(seed: seed) }

    /// Parses the form of ``description``, in either case.
    package init?(_ text: String) {
        self.init(digits: Array(text.utf8)[...])
    }

    /// Parses the form that ``appendDigits(to:)`` appends.
    init?(digits: ArraySlice<UInt8>) {
        guard digits.count == 16 else { return nil }
        var bits: UInt64 = 0
        for digit in digits {
            guard let value = Hexadecimal.value(of: digit) else { return nil }
            bits = bits << 4 | UInt64(value)
        }
        guard let rawValue = Int64(exactly: bits) else { return nil }
        self.init(rawValue: rawValue)
    }

    /// The grant's position in 0..<1 among all grants, both in the table and in each period.
    package var phase: Double { Double(rawValue >> 31) * 0x1p-32 }

    package static func < (left: GrantID, right: GrantID) -> Bool { left.rawValue < right.rawValue }

    /// Sixteen hexadecimal digits: JSON readers round whole numbers beyond 2^53, so an id is never printed as a number.
    package var description: String {
        var digits: [UInt8] = []
        digits.reserveCapacity(16)
        appendDigits(to: &digits)
        return String(decoding: digits, as: UTF8.self)
    }

    /// Appends the bytes of ``description``.
    func appendDigits(to text: inout [UInt8]) {
        text.append(hexadecimal: UInt64(bitPattern: rawValue), digits: 16)
    }
}

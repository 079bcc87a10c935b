package import Clocks

/// The immutable name of a grant: 63 random bits.
///
/// Its high bits are the grant's phase, which says when in each period it comes due: so rows that come due together lie together
/// in a table ordered by id.
package struct GrantID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let rawValue: Int64

    package init(rawValue: Int64) {
        self.rawValue = rawValue
    }

    package static func random(from source: any RandomSource) -> GrantID {
        GrantID(rawValue: Int64(source.nextBits() >> 1))
    }

    /// Reads what ``description`` prints.
    package init?(_ text: String) {
        guard text.utf8.count == 16, let bits = UInt64(text, radix: 16), bits <= UInt64(Int64.max) else { return nil }
        self.init(rawValue: Int64(bits))
    }

    /// Where in 0..<1 this grant lies among all, in the table and in each period.
    package var phase: Double { Double(rawValue >> 31) * 0x1p-32 }

    package static func < (left: GrantID, right: GrantID) -> Bool { left.rawValue < right.rawValue }

    /// Sixteen hexadecimal digits: JSON readers round whole numbers beyond 2^53, so a grant is never printed as one.
    package var description: String {
        let digits = String(rawValue, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

/// Counts of values by size, for percentiles with an error of at most 2 %, in constant memory.
///
/// Buckets are exact below 64. Above that, each power of two has 32 buckets of equal width, and the middle of a bucket
/// represents all its values. Recording is a shift and an addition. Values beyond 2^40 count as 2^40 (in milliseconds,
/// 35 years).
package struct Histogram: Sendable {
    private static let bits = 5
    private static let perOctave = 1 << bits
    private static let highest: UInt64 = 1 << 40

    private var buckets = [UInt32](repeating: 0, count: Self.index(of: Self.highest) + 1)
    private var largest: UInt64 = 0
    private(set) var count = 0

    /// Counts a value.
    ///
    /// A negative one counts as zero.
    mutating func record(_ value: Int64) {
        let value = min(UInt64(max(0, value)), Self.highest)
        buckets[Self.index(of: value)] += 1
        largest = max(largest, value)
        count += 1
    }

    /// Returns the smallest value that a `share` (above 0, up to 1) of all values does not exceed, or `nil` if there
    /// are no values.
    func percentile(_ share: Double) -> Int64? {
        guard count > 0 else { return nil }
        var remaining = max(1, Int((share * Double(count)).rounded(.up)))
        for (index, occurrences) in buckets.enumerated() {
            remaining -= Int(occurrences)
            if remaining <= 0 { return Int64(min(Self.middle(of: index), largest)) }
        }
        return Int64(largest)
    }

    private static func index(of value: UInt64) -> Int {
        guard value >= perOctave else { return Int(value) }
        let shift = UInt64.bitWidth - 1 - value.leadingZeroBitCount - bits
        return shift * perOctave + Int(value >> UInt64(shift))
    }

    private static func middle(of index: Int) -> UInt64 {
        guard index >= 2 * perOctave else { return UInt64(index) }
        let shift = index / perOctave - 1
        let first = UInt64(index - shift * perOctave) << UInt64(shift)
        return first + (1 << UInt64(shift - 1))
    }
}

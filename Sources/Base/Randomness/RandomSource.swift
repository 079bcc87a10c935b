/// The source of randomness: ids, claims and back-off take it through `init`, so that a test can repeat its values.
package protocol RandomSource: Sendable {
    /// Returns a number evenly distributed from 0 up to but not including 1.
    func nextUnit() -> Double
    /// Returns sixty-four random bits.
    func nextBits() -> UInt64
}

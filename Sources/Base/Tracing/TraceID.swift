/// The id of a trace: sixteen bytes, not all zero.
package struct TraceID: Hashable, Sendable {
    private let high: UInt64
    private let low: UInt64

    /// Reads 32 lower-case hexadecimal digits.
    init?(_ digits: some Collection<UInt8>) {
        guard digits.count == 32, let high = UInt64(hexadecimal: digits.prefix(16)),
            let low = UInt64(hexadecimal: digits.dropFirst(16)), high != 0 || low != 0
        else { return nil }
        self.high = high
        self.low = low
    }

    /// The 32 digits.
    package var text: String { high.hexadecimal + low.hexadecimal }
}

/// The id of a span: eight bytes, not all zero.
package struct SpanID: Hashable, Sendable {
    private let value: UInt64

    /// Makes an id of random bits.
    package init(random: any RandomSource) {
        var bits = random.nextBits()
        while bits == 0 { bits = random.nextBits() }
        value = bits
    }

    /// Reads 16 lower-case hexadecimal digits.
    init?(_ digits: some Collection<UInt8>) {
        guard digits.count == 16, let value = UInt64(hexadecimal: digits), value != 0 else { return nil }
        self.value = value
    }

    /// The 16 digits.
    package var text: String { value.hexadecimal }
}

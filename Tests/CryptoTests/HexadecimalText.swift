extension [UInt8] {
    /// Reads the bytes of a test vector as printed in standards; skips blanks.
    init(hexadecimal text: String) {
        let digits = text.compactMap(\.hexDigitValue)
        self = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}

extension UInt64 {
    /// Reads sixteen lower-case digits.
    init?(hexadecimal digits: some Collection<UInt8>) {
        guard let bytes = Hexadecimal.decode(digits), bytes.count == 8 else { return nil }
        self = bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The sixteen digits.
    var hexadecimal: String {
        let bytes = stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: self >> $0) }
        return Hexadecimal.encode(bytes)
    }
}

/// Whole numbers as bytes, the highest first.
extension [UInt8] {
    init(bigEndian value: some FixedWidthInteger) {
        self = []
        append(bigEndian: value)
    }

    mutating func append<Value: FixedWidthInteger>(bigEndian value: Value) {
        for shift in stride(from: Value.bitWidth - 8, through: 0, by: -8) {
            append(UInt8(truncatingIfNeeded: value &>> Value(truncatingIfNeeded: shift)))
        }
    }
}

extension Sequence<UInt8> {
    /// The whole number that at most eight bytes are.
    var bigEndian: Int64 { reduce(0) { $0 << 8 | Int64($1) } }
}

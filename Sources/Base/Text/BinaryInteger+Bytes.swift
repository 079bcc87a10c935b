/// Sizes for people.
extension BinaryInteger {
    /// The number as a number of bytes, in a unit that suits its size, as in "1.5 MiB".
    package var inBytes: String {
        guard self >= 1024 else { return self == 1 ? "1 byte" : "\(self) bytes" }
        var tenths = Int64(clamping: self) * 10
        var unit = ""
        for larger in ["KiB", "MiB", "GiB", "TiB"] where tenths >= 10240 {
            tenths /= 1024
            unit = larger
        }
        return "\(tenths / 10).\(tenths % 10) \(unit)"
    }

    /// The number as a number of bytes, in whole mebibytes, as in "256 MiB".
    package var inMebibytes: String { "\(self >> 20) MiB" }
}

/// Formats a number of bytes for people.
enum ByteCount {
    static func text(_ count: Int64) -> String {
        guard count >= 1024 else { return count == 1 ? "1 byte" : "\(count) bytes" }
        var tenths = count * 10
        var unit = ""
        for larger in ["KiB", "MiB", "GiB", "TiB"] where tenths >= 10240 {
            tenths /= 1024
            unit = larger
        }
        return "\(tenths / 10).\(tenths % 10) \(unit)"
    }
}

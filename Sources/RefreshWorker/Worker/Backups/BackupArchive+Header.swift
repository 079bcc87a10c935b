/// What an archive says about a file before its content.
extension BackupArchive {
    /// Returns the block of 512 bytes, or `nil` if the absolute path is too long.
    ///
    /// `modifiedAt` is in seconds since 1970.
    static func header(
        path: String,
        mode: UInt32,
        user: (id: UInt32, name: String),
        group: (id: UInt32, name: String),
        size: Int64,
        modifiedAt: Int64
    ) -> [UInt8]? {
        guard let (prefix, name) = parts(of: path) else { return nil }
        var block = [UInt8](repeating: 0, count: 512)
        func put(_ bytes: some Sequence<UInt8>, at offset: Int) {
            for (index, byte) in bytes.enumerated() { block[offset + index] = byte }
        }
        /// Octal digits, and a zero byte at the end of the field.
        func put(octal value: some BinaryInteger, at offset: Int, width: Int) {
            let digits = String(max(0, value), radix: 8)
            put((String(repeating: "0", count: max(0, width - 1 - digits.count)) + digits).utf8, at: offset)
        }
        put(name, at: 0)
        put(octal: mode, at: 100, width: 8)
        put(octal: user.id & 0o7777777, at: 108, width: 8)
        put(octal: group.id & 0o7777777, at: 116, width: 8)
        if size < 0o100_000_000_000 {
            put(octal: size, at: 124, width: 12)
        } else {
            // The form of GNU for 8 GiB and more: a mark, and the number with the big end first.
            put([0x80], at: 124)
            put((0..<8).map { UInt8(truncatingIfNeeded: size >> (56 - 8 * $0)) }, at: 128)
        }
        put(octal: modifiedAt, at: 136, width: 12)
        put("        0".utf8, at: 148)
        put("ustar\u{0}00".utf8, at: 257)
        put(user.name.utf8.prefix(31), at: 265)
        put(group.name.utf8.prefix(31), at: 297)
        put(prefix, at: 345)
        // Computed with blanks in its own place.
        put(octal: block.reduce(0) { $0 + Int($1) }, at: 148, width: 7)
        block[154] = 0
        return block
    }

    /// Returns the path without its first slash, as the parts before and after a slash that fit their fields.
    private static func parts(of path: String) -> (prefix: ArraySlice<UInt8>, name: ArraySlice<UInt8>)? {
        let bytes = Array(path.utf8.drop { $0 == UInt8(ascii: "/") })
        if bytes.count <= 100 { return ([], bytes[...]) }
        let slashes = bytes.indices.filter { bytes[$0] == UInt8(ascii: "/") }
        guard let slash = slashes.first(where: { bytes.count - $0 - 1 <= 100 }), slash <= 155, slash < bytes.count - 1
        else { return nil }
        return (bytes[..<slash], bytes[(slash + 1)...])
    }
}

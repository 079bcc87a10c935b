/// A hash that is the same in every process and every version of this program.
enum StableHash {
    /// FNV-1a, 64 bits (https://datatracker.ietf.org/doc/html/draft-eastlake-fnv).
    static func of(_ text: String) -> UInt64 {
        text.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0100_0000_01b3 }
    }
}

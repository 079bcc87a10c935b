private import CCrypto

/// Comparison that tells nobody, by the time it takes, how much of a guess was right.
package enum ConstantTime {
    /// Whether the bytes are the same; only their number shows in the time taken.
    package static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        return unsafe CRYPTO_memcmp(left, right, left.count) == 0
    }
}

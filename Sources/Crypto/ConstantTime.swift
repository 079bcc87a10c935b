private import CCrypto

/// Comparison whose duration does not reveal how much of a guess was right.
package enum ConstantTime {
    /// Returns `true` if the bytes are equal; the duration depends only on their number.
    package static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        return unsafe CRYPTO_memcmp(left, right, left.count) == 0
    }
}

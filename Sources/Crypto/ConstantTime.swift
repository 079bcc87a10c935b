private import CCrypto

/// Comparison whose duration does not reveal how much of a guess was right.
package enum ConstantTime {
    /// Returns `true` if the bytes are equal.
    ///
    /// The duration depends only on their number.
    package static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        unsafe areEqual(left.span.bytes, right.span.bytes)
    }

    static func areEqual(_ left: RawSpan, _ right: RawSpan) -> Bool {
        guard left.byteCount == right.byteCount else { return false }
        return unsafe left.withUnsafeBytes { left in
            unsafe right.withUnsafeBytes { right in
                unsafe CRYPTO_memcmp(left.baseAddress, right.baseAddress, left.count) == 0
            }
        }
    }
}

private import CCrypto

/// Hashes of the SHA-2 family (FIPS 180-4).
package enum Digest {
    /// Fetched once, because a fetch costs more than hashing a token.
    ///
    /// `nonisolated(unsafe)` holds because an algorithm does not change after it is fetched.
    private nonisolated(unsafe) static let algorithm512 = unsafe fetch("SHA2-512")

    package static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        unsafe sha256(bytes.span.bytes)
    }

    package static func sha256(_ bytes: RawSpan) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        let result = unsafe bytes.withUnsafeBytes { unsafe ccrypto_sha256($0.baseAddress, $0.count, &digest) }
        guard LibCrypto.isSuccess(result) else { LibCrypto.endProcess("SHA-256 failed") }
        return digest
    }

    package static func sha512(_ bytes: [UInt8]) -> [UInt8] {
        unsafe digest(of: bytes, by: algorithm512, length: 64)
    }

    private static func fetch(_ name: String) -> OpaquePointer? {
        OpenSSL.prepare()
        return unsafe EVP_MD_fetch(nil, name, nil)
    }

    private static func digest(of bytes: [UInt8], by algorithm: OpaquePointer?, length: Int) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: length)
        let result = unsafe EVP_Digest(bytes, bytes.count, &digest, nil, algorithm, nil)
        // It only fails if memory runs out or the library lacks its own algorithms. A wrong hash would be worse than a
        // crash.
        guard LibCrypto.isSuccess(result) else { LibCrypto.endProcess("EVP_Digest failed") }
        return digest
    }
}

private import CCrypto

/// Hashes of the SHA-2 family (FIPS 180-4).
package enum Digest {
    /// Fetched once, because a fetch costs more than hashing a token.
    ///
    /// `nonisolated(unsafe)` holds because an algorithm does not change after it is fetched.
    private nonisolated(unsafe) static let algorithm512 = {
        OpenSSL.prepare()
        return unsafe EVP_MD_fetch(nil, "SHA2-512", nil)
    }()

    package static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        unsafe sha256(bytes.span.bytes)
    }

    package static func sha256(_ bytes: RawSpan) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        let result = unsafe bytes.withUnsafeBytes { unsafe ccrypto_sha256($0.baseAddress, $0.count, &digest) }
        guard OpenSSL.isSuccess(result) else { OpenSSL.endProcess("SHA-256 failed") }
        return digest
    }

    package static func sha512(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 64)
        let result = unsafe EVP_Digest(bytes, bytes.count, &digest, nil, algorithm512, nil)
        // It only fails if memory runs out or the library lacks its own algorithms. A wrong hash would be worse than a
        // crash.
        guard OpenSSL.isSuccess(result) else { OpenSSL.endProcess("EVP_Digest failed") }
        return digest
    }
}

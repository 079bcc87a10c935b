private import CCrypto

/// The only code that checks the results of OpenSSL's libcrypto.
package enum OpenSSL {
    /// Throws unless the call returned 1, which means success for every call used here.
    ///
    /// It empties the thread's error queue, because the next TLS call on the same thread would report leftover errors
    /// as its own (https://docs.openssl.org/3.0/man3/SSL_get_error/).
    static func check(_ call: String, _ result: Int32) throws(CryptoError) {
        guard result != 1 else { return }
        let code = ERR_get_error()
        ERR_clear_error()
        throw .libraryFailure(call: call, code: code)
    }

    /// Returns `true` if the call returned 1, for callers that treat every other result the same, such as a bad
    /// signature.
    ///
    /// It empties the thread's error queue, like ``check(_:_:)``. It ends the process if memory was refused, because a
    /// signature would count as bad.
    static func isSuccess(_ result: Int32) -> Bool {
        guard result != 1 else { return true }
        if ccrypto_take_errors() != 0 { endProcess("OpenSSL could not allocate memory") }
        return false
    }

    /// Ends the process because a call failed that fails only without memory.
    ///
    /// `fatalError` prints its text in a release build too, unlike `precondition`.
    static func endProcess(_ fault: String) -> Never {
        fatalError("\(fault): is the memory used up?")
    }

    /// Fills a part of the buffer from the library's random generator, which the system seeds.
    static func fillRandomly(_ buffer: inout MutableRawSpan, in range: Range<Int>) throws(CryptoError) {
        prepare()
        let result = unsafe buffer.withUnsafeMutableBytes { bytes in
            let part = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[range])
            return unsafe RAND_bytes(part.assumingMemoryBound(to: UInt8.self).baseAddress, Int32(part.count))
        }
        try check("RAND_bytes", result)
    }
}

extension OpenSSL {
    /// The version that this process runs with.
    package static var version: String { unsafe String(cString: OpenSSL_version(OPENSSL_VERSION_STRING)) }

    /// Initializes OpenSSL, which this module, libcurl and libpq share, without its clean-up at the end of the process.
    ///
    /// That clean-up frees tables which other threads still use: a process crashed at its exit while the HTTP client's
    /// thread was in a TLS connection. The system frees all memory anyway.
    ///
    /// Only the first initialization in a process decides about the clean-up
    /// (https://docs.openssl.org/3.0/man3/OPENSSL_init_crypto/). So this must be called before every call that might be
    /// the first to use OpenSSL, libcurl or libpq. Repeated calls cost one load.
    package static func prepare() {
        guard initialization == 1 else { endProcess("OPENSSL_init_crypto failed") }
    }

    private static let initialization = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
}

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

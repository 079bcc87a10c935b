private import CCrypto

/// The only code that checks the results of OpenSSL's libcrypto.
package enum OpenSSL {
    /// Throws unless the call returned 1, which means success for every call used here.
    ///
    /// It empties the thread's error queue, because the next TLS call on the same thread would report leftover errors
    /// as its own (https://docs.openssl.org/3.0/man3/SSL_get_error/).
    static func check(_ call: String, result: Int32) throws(CryptoError) {
        guard result != 1 else { return }
        let code = ERR_get_error()
        ERR_clear_error()
        throw .libraryFailure(call: call, code: code)
    }

    /// Returns `true` if the call returned 1, for callers that treat every other result the same, such as a bad
    /// signature.
    ///
    /// It empties the thread's error queue, like ``check(_:result:)``. It ends the process if memory was refused,
    /// because a signature would count as bad.
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
        try check("RAND_bytes", result: result)
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

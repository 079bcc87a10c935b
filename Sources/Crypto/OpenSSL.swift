private import CCrypto

/// The initialization of OpenSSL, which this module, libcurl and libpq share.
package enum OpenSSL {
    /// Initializes OpenSSL without its clean-up at the end of the process.
    ///
    /// That clean-up frees tables which other threads still use: a process crashed at its exit while the HTTP client's
    /// thread was in a TLS connection. The system frees all memory anyway.
    ///
    /// Only the first initialization in a process decides about the clean-up
    /// (https://docs.openssl.org/3.0/man3/OPENSSL_init_crypto/). So this must be called before every call that may be
    /// the first to use OpenSSL, libcurl or libpq. Repeated calls cost one load.
    package static func prepare() {
        guard result == 1 else { LibCrypto.endProcess("OPENSSL_init_crypto failed") }
    }

    private static let result = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
}

private import CCrypto

/// The OpenSSL that this process runs with.
package enum OpenSSLLibrary {
    package static var version: String { unsafe String(cString: OpenSSL_version(OPENSSL_VERSION_STRING)) }
}
